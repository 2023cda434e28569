"""GB/T 32960, what every electric car in China reports: `time,speed,sumvoltage,sumcurrent,soc,...`, a row every 10 s.

The standard fixes the units, so that no export names them; positive current leaves the battery. Exports differ in spelling and language.
"""

from __future__ import annotations

from collections.abc import Sequence

from evband.logs.formats.aliases import plain

_SPELLINGS = {  # name and unit that every reader of tables knows -> spellings, without blanks and underscores
    (
        "time",
        "",
    ): "time datatime datetime timestamp terminaltime collecttime reporttime 数据采集时间 数据时间 采集时间 上报时间 时间",
    ("speed", "km/h"): "speed vehiclespeed vehspd 车速 车辆速度",
    ("battery voltage", "V"): "sumvoltage sumvolt totalvoltage totalvolt 总电压",
    ("battery current", "A"): "sumcurrent sumcurr totalcurrent 总电流",
    ("trip distance", "km"): "summileage summile totalmileage mileage totalodometer 累计里程 总里程",
    ("soc", "%"): "soc",
    ("vin", ""): "vin vid vehicleid 车辆标识 车架号",
}
_MEANING = {word: meaning for meaning, words in _SPELLINGS.items() for word in words.split()}
_NEEDED = {"speed", "battery voltage", "battery current", "soc"}
NOTE = "its columns are those of GB/T 32960, whose units are fixed: km/h, V, A"


def names(header: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Name and unit of the columns that the standard knows; {} where these are not its columns.

    >>> names(["time", "SPEED", "SOC", "SUM_VOLTAGE", "SUM_CURRENT"])["SUM_CURRENT"], names(["time", "speed", "voltage"])
    (('battery current', 'A'), {})
    """
    known = {name: _MEANING[word] for name in header if (word := plain(name).replace(" ", "")) in _MEANING}
    return known if {name for name, _ in known.values()} >= _NEEDED else {}
