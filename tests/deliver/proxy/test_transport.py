"""Connections and shared segments: framing, ends, who may come in, when memory is free again."""

from __future__ import annotations

import gc
import multiprocessing
import os
import socket
import stat
import struct
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

from forebay.deliver.proxy.transport import (
    HAS_SEGMENTS,
    Connection,
    Disconnected,
    Listener,
    Segment,
    connect,
)
from proxies import BOUND, in_thread

needs_segments = pytest.mark.skipif(not HAS_SEGMENTS, reason="no descriptors over sockets here")


@pytest.fixture
def pair():
    sockets = socket.socketpair()
    connections = [Connection(s) for s in sockets]
    yield connections
    for connection in connections:
        connection.close()


@pytest.fixture
def listener():
    made = Listener()
    yield made
    made.close()


def start(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("size", [0, 1, 11, 1 << 16, 5_000_000])
def test_messages_of_any_size_arrive_whole_and_in_order(pair, size):
    messages = [os.urandom(size), b"", os.urandom(size + 1)]
    sender = start(lambda: [pair[0].send(message) for message in messages])
    assert [bytes(in_thread(pair[1].receive)[0]) for _ in messages] == messages
    sender.join(BOUND)
    assert not sender.is_alive()


def test_a_message_that_comes_byte_by_byte_is_one_message():
    a, b = socket.socketpair()
    data = struct.pack("<QI", 5, 0) + b"hello"
    receiver = Connection(b)
    sender = start(lambda: [a.sendall(bytes([byte])) for byte in data])
    assert bytes(in_thread(receiver.receive)[0]) == b"hello"
    sender.join(BOUND)
    a.close()
    receiver.close()


@needs_segments
def test_messages_that_wait_together_keep_their_descriptors(pair):
    segments = [Segment.create(size) for size in (10, 20, 30)]
    for _, fd in segments:
        pair[0].send(b"without")
        pair[0].send(b"with", (fd,))
    for segment, own in segments:
        assert pair[1].receive() == (b"without", [])
        data, (fd,) = pair[1].receive()
        assert bytes(data) == b"with"
        assert os.fstat(fd).st_size == segment.size + Segment.HEAD
        os.close(fd)
        os.close(own)


@needs_segments
def test_descriptors_of_messages_that_nobody_took_are_closed(pair):
    _, fd = Segment.create(10)
    for text in (b"taken", b"left", b"left"):
        pair[0].send(text, (fd,))
    os.close(fd)
    os.close(pair[1].receive()[1][0])  # that none is left open is what every test here is asked


@needs_segments
def test_a_descriptor_comes_with_its_message(pair):
    segment, fd = Segment.create(100)
    pair[0].send(b"first", (fd,))
    pair[0].send(b"second")
    os.close(fd)
    data, fds = pair[1].receive()
    assert bytes(data) == b"first"
    other = Segment(100, fds[0])
    os.close(fds[0])
    segment.fill()[:3] = [1, 2, 3]
    assert other.lend()[:3].tolist() == [1, 2, 3]
    assert pair[1].receive() == (b"second", [])


def test_the_other_sides_end_is_the_readers_end(pair):
    pair[0].close()
    with pytest.raises(Disconnected):
        in_thread(pair[1].receive)


def test_half_a_message_is_no_message(pair):
    a, b = socket.socketpair()
    a.sendall(struct.pack("<QI", 100, 0) + b"half")
    a.close()
    connection = Connection(b)
    with pytest.raises(Disconnected):
        in_thread(connection.receive)
    connection.close()


def test_sending_to_who_has_gone_raises(pair):
    pair[1].close()
    with pytest.raises(Disconnected):
        pair[0].send(b"x")


def test_ending_a_connection_wakes_its_reader(pair):
    ended = []

    def read():
        try:
            pair[0].receive()
        except Disconnected:
            ended.append(True)

    thread = start(read)
    pair[0].end()
    thread.join(BOUND)
    assert ended


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname != "Linux", reason="as Linux does")
def test_what_was_sent_before_the_end_is_still_received(pair):
    pair[0].send(b"said")
    pair[1].end()
    assert bytes(pair[1].receive()[0]) == b"said"
    with pytest.raises(Disconnected):
        pair[1].receive()


def test_a_message_longer_than_the_limit_ends_the_connection(pair):
    pair[0].send(b"x" * 11)
    with pytest.raises(Disconnected, match="11 bytes"):
        pair[1].receive(limit=10)


def test_the_death_of_a_process_ends_its_connection(listener):
    def die():
        connect(listener.address).send(b"I live")
        os.kill(os.getpid(), 9)

    process = multiprocessing.get_context("fork").Process(target=die)
    process.start()
    connection = in_thread(listener.accept)
    assert bytes(in_thread(connection.receive)[0]) == b"I live"
    with pytest.raises(Disconnected):
        in_thread(connection.receive)
    process.join(BOUND)
    connection.close()


def test_one_can_connect_and_send_before_anyone_accepts(listener):
    client = connect(listener.address)
    client.send(b"early")
    server = in_thread(listener.accept)
    assert bytes(in_thread(server.receive)[0]) == b"early"
    client.close()
    server.close()


def test_closing_the_listener_wakes_who_accepts_and_removes_the_socket(listener):
    ended = []

    def accept():
        try:
            listener.accept()
        except Disconnected:
            ended.append(True)

    thread = start(accept)
    listener.close()
    thread.join(BOUND)
    assert ended
    with pytest.raises(Disconnected, match="no server listens"):
        connect(listener.address)
    if isinstance(listener.address, str):
        assert not Path(listener.address).parent.exists()


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="a socket without a file")
def test_only_this_user_can_reach_the_socket(listener):
    folder = Path(listener.address).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="a socket without a file")
def test_a_new_listener_removes_what_killed_processes_left_and_no_others(monkeypatch):
    def make_and_die():
        kept = Listener()
        os.kill(os.getpid(), 9)
        del kept

    with tempfile.TemporaryDirectory() as name:
        monkeypatch.setattr(tempfile, "tempdir", name)
        folder = Path(name)
        alive = Listener()
        process = multiprocessing.get_context("fork").Process(target=make_and_die)
        process.start()
        process.join(BOUND)
        (folder / "forebay-by-hand").mkdir()
        assert len(list(folder.iterdir())) == 3
        new = Listener()
        kept = {Path(listener.address).parent for listener in (alive, new)}
        assert set(folder.iterdir()) == {*kept, folder / "forebay-by-hand"}
        connect(alive.address).close()
        alive.close()
        new.close()


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="a socket without a file")
def test_a_long_temporary_folder_does_not_matter(tmp_path, monkeypatch):
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    listener = Listener()
    connect(listener.address).close()
    listener.close()


@needs_segments
def test_a_segment_is_free_again_when_the_last_array_over_it_is_gone():
    segment, fd = Segment.create(1000)
    reader = Segment(1000, fd)
    os.close(fd)
    segment.fill()[:] = 7
    segment.mark()
    lent = reader.lend()
    view = lent[100:200].view(np.float32).reshape(5, 5)
    assert lent.shape == (1000,)
    assert (lent == 7).all()
    del lent
    assert segment.in_use
    other = view[2:]
    del view
    assert segment.in_use
    del other
    gc.collect()
    assert not segment.in_use


@needs_segments
def test_a_forked_child_does_not_free_what_its_parent_reads():
    segment, fd = Segment.create(10)
    os.close(fd)
    segment.mark()
    lent = [segment.lend()]

    def child():
        lent.clear()
        gc.collect()

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(BOUND)
    assert process.exitcode == 0
    assert segment.in_use
    lent.clear()
    assert not segment.in_use
