"""Every row is a target once an epoch, and a drive's start has no burn-in."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evband.training.windows import cut, epoch_batches, epoch_shape, find_segments, most_windows, share_windows

lengths_of_segments = st.lists(st.integers(1, 400), min_size=1, max_size=8)


def segments_of(lengths):
    start = np.zeros(sum(lengths), bool)
    start[np.cumsum([0, *lengths[:-1]])] = True
    return find_segments(start, np.repeat(np.arange(len(lengths)), lengths))


@settings(max_examples=60, deadline=None)
@given(lengths_of_segments, st.integers(2, 130), st.data())
def test_every_row_is_a_target_exactly_once(lengths, window, data):
    burn_in = data.draw(st.integers(0, window - 1))
    rng = data.draw(st.sampled_from([None, 0, 1]))
    segments = segments_of(lengths)
    windows = cut(segments, window, burn_in, None if rng is None else np.random.default_rng(rng))
    hit = np.zeros(sum(lengths), int)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    for start, first, stop in zip(windows.start, windows.first, windows.stop, strict=True):
        assert 0 <= first < stop <= window
        hit[start + first : start + stop] += 1
        assert owner[start] == owner[start + stop - 1], "a window reached over a reset"
    assert (hit == 1).all()
    assert len(windows) <= most_windows(segments, window, burn_in)


def test_no_burn_in_where_a_drive_begins_and_a_full_one_elsewhere():
    segments = segments_of([300, 50, 500])
    windows = cut(segments, 128, 32, np.random.default_rng(0))
    at_start = np.isin(windows.start, segments.begin) & (windows.first == 0)
    assert at_start.sum() == 3
    assert set(windows.first[~at_start].tolist()) == {32}


def in_one_trip(*lengths):
    """Segments of one trip, and a long one of another."""
    start = np.zeros(sum(lengths) + 300, bool)
    start[np.cumsum([0, *lengths])] = True
    return find_segments(start, np.repeat([0, 1], [sum(lengths), 300]))


def test_short_segments_of_a_trip_share_windows_and_trips_do_not():
    shared = share_windows(in_one_trip(*[20] * 30), 128, 32)
    assert shared.begin.tolist() == [0, 600]
    assert shared.length.tolist() == [600, 300]
    assert shared.trip.tolist() == [0, 1]
    few = most_windows(shared, 128, 32)
    assert few <= 0.4 * most_windows(in_one_trip(*[20] * 30), 128, 32), "cost must grow with rows, not with gaps"


def test_segments_as_long_as_a_window_or_few_short_ones_stay_as_they_are():
    for segments in (in_one_trip(128, 200, 500), in_one_trip(40, *[1200] * 5)):
        assert share_windows(segments, 128, 32) is segments


def test_a_log_full_of_gaps_is_cut_into_as_few_windows_as_hold_it_and_elsewhere_each_time():
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 400, 200)
    start = np.zeros(lengths.sum() + 6000, bool)
    start[np.append(0, np.cumsum(lengths))] = True
    start[lengths.sum() :: 20] = True  # a trip of short segments
    trip = np.repeat(np.arange(201), [*lengths, 6000])
    shared = share_windows(find_segments(start, trip), 128, 32)
    assert shared.few
    fewest = len(cut(shared, 128, 32))
    cuts = [cut(shared, 128, 32, rng) for _ in range(5)]
    assert {len(each) for each in cuts} == {fewest} == {most_windows(shared, 128, 32)}
    assert len({each.start.tobytes() for each in cuts}) == 5
    for each in cuts:
        hit = np.zeros(len(start), int)
        for first, stop in zip(each.start + each.first, each.start + each.stop, strict=True):
            hit[first:stop] += 1
        assert (hit == 1).all()
        assert (each.stop <= 128).all()


def test_windows_fall_elsewhere_in_each_epoch():
    segments = segments_of([5000])
    one, two = (cut(segments, 128, 32, np.random.default_rng(seed)) for seed in (0, 1))
    assert not np.array_equal(one.start[1:20], two.start[1:20])


def test_an_epoch_is_hardly_wider_than_its_windows():
    """Windows a step come in eights; a few rows more a window may save the eight that would be nearly empty."""
    run = [segments_of([7651])]
    assert epoch_shape(run, 128, 32, 64) == (129, 2, 40)  # 81 windows of 128
    assert epoch_shape(run, 160, 16, 32) == (179, 2, 24)  # 54 windows of 160
    assert epoch_shape([segments_of([200])], 128, 32, 64) == (128, 1, 8)
    assert epoch_shape([segments_of([96 * 4])], 128, 32, 3) == (128, 2, 3)


@pytest.mark.parametrize("batch", [3, 16, 64])
def test_an_epoch_has_room_for_every_window(batch):
    rng = np.random.default_rng(0)
    for rows in rng.integers(100, 20_000, 60):
        choices = [segments_of([int(rows)]), segments_of([int(rows) // 2, int(rows) // 3])]
        window, steps, each = epoch_shape(choices, 128, 32, batch)
        assert 128 <= window <= 144
        assert each <= batch
        for segments in choices:
            assert max(len(cut(segments, window, 32, rng)) for _ in range(5)) <= steps * each


def test_batches_hold_every_window_once():
    windows = cut(segments_of([300, 50, 500]), 64, 16, np.random.default_rng(0))
    batches = epoch_batches(windows, 3, 8, np.random.default_rng(1))
    assert batches.shape == (3, 3, 8)
    held = {tuple(w) for w in batches.reshape(3, -1).T.tolist() if w[2] > 0}
    assert held == set(zip(windows.start.tolist(), windows.first.tolist(), windows.stop.tolist(), strict=True))
    assert (batches[2] > 0).sum() == len(windows)


def test_one_of_the_copies_joins_its_trip_in_a_share_of_them():
    start = np.zeros(4000, bool)
    start[::100] = True
    trip, copy = np.repeat(np.tile(np.arange(10), 4), 100), np.repeat(np.arange(4), 1000)
    segments = find_segments(start, trip, copy)
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(200):
        drawn = segments.drawn(0.3, rng)
        assert sorted(drawn.trip[drawn.copy == 0].tolist()) == list(range(10)), "every trip itself"
        copied = drawn.trip[drawn.copy > 0].tolist()
        assert len(set(copied)) == len(copied) == 3, "and one copy of three in ten"
        shares.append(drawn.copy[drawn.copy > 0])
    np.testing.assert_allclose(np.bincount(np.concatenate(shares))[1:] / 600, 1 / 3, atol=0.06)
    assert most_windows(segments, 128, 32) == 2 * most_windows(segments_of([100] * 10), 128, 32)
    assert segments.with_first().copy.tolist() == [0] * 10 + [1] * 10


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_an_epoch_has_room_for_the_copies_of_its_share_and_hardly_for_more(share):
    rng = np.random.default_rng(0)
    rows = np.tile(rng.integers(900, 1100, 40), 4)  # 40 trips and three copies of each
    start = np.zeros(rows.sum(), bool)
    start[np.append(0, np.cumsum(rows)[:-1])] = True
    segments = find_segments(
        start, np.repeat(np.tile(np.arange(40), 4), rows), np.repeat(np.repeat(np.arange(4), 40), rows)
    )
    segments = segments.of_trips(np.arange(3, 37))  # as of a member
    window, steps, each = epoch_shape([segments], 128, 32, 16, share)
    count = [len(cut(segments.drawn(share, rng), window, 32, rng)) for _ in range(50)]
    assert 0.85 * steps * each <= min(count) <= max(count) <= steps * each
