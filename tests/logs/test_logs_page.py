"""docs/guides/logs.md tells of the formats there are, and its map is one."""

import re
import tomllib
from pathlib import Path

from evband.logs.formats import FORMATS
from evband.logs.formats.mapped import parse_map

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "logs.md").read_text(encoding="utf-8")


def test_every_format_is_on_the_page():
    assert [module.NAME for module in FORMATS if f"| {module.NAME}" not in PAGE] == []


def test_the_map_on_the_page_is_a_map():
    (block,) = re.findall(r"```toml[^\n]*\n(.*?)```", PAGE, re.DOTALL)
    columns = {column.channel: column for _, column in parse_map(tomllib.loads(block))}
    assert (columns["speed_kmh"].unit, columns["battery_current_a"].scale) == ("mph", -1.0)
