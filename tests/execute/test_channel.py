from __future__ import annotations

import threading

import pytest

from forebay.execute.channel import Channel, Closed


def in_thread(function):
    """Run a function in a thread; gives what joins it and returns its result or error."""
    box = []

    def run():
        try:
            box.append(function())
        except BaseException as error:  # handed to the test
            box.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def join():
        thread.join(10)
        assert not thread.is_alive(), "still waiting"
        return box[0]

    return join


def test_items_come_out_in_the_order_they_went_in():
    channel = Channel(3)
    for item in "abc":
        channel.put(item)
    assert [channel.get() for _ in range(3)] == ["a", "b", "c"]


def test_a_full_channel_makes_the_writer_wait_until_there_is_room():
    channel = Channel(1)
    channel.put(1)
    join = in_thread(lambda: channel.put(2))
    assert channel.get() == 1
    assert join() is None
    assert channel.get() == 2


def test_after_close_what_is_there_can_still_be_taken():
    channel = Channel(2)
    channel.put(1)
    channel.close()
    assert channel.get() == 1
    with pytest.raises(Closed):
        channel.get()
    with pytest.raises(Closed):
        channel.put(2)


def test_cancel_drops_what_is_there_and_says_what():
    channel = Channel(2)
    channel.put(1)
    channel.put(2)
    assert channel.cancel() == [1, 2]
    with pytest.raises(Closed):
        channel.get()


@pytest.mark.parametrize("end", ["close", "cancel"])
def test_an_end_wakes_a_reader(end):
    channel = Channel(1)
    join = in_thread(channel.get)
    getattr(channel, end)()
    assert isinstance(join(), Closed)


@pytest.mark.parametrize("end", ["close", "cancel"])
def test_an_end_wakes_a_writer(end):
    channel = Channel(1)
    channel.put(1)
    join = in_thread(lambda: channel.put(2))
    getattr(channel, end)()
    assert isinstance(join(), Closed)


def test_nothing_is_lost_or_doubled_between_many_threads():
    channel = Channel(2)
    writers = [
        in_thread(lambda n=n: [channel.put(n * 100 + i) for i in range(100)]) for n in range(4)
    ]

    def drain():
        taken = []
        try:
            while True:
                taken.append(channel.get())
        except Closed:
            return taken

    readers = [in_thread(drain) for _ in range(3)]
    for join in writers:
        join()
    channel.close()
    assert sorted(item for join in readers for item in join()) == list(range(400))
