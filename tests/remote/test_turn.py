"""Turns are given back, wherever Ctrl-C comes."""

import os
import signal
import threading
import time

from weft_remote.turn import Turn


def test_one_at_a_time_and_nobody_waits():
    turn, first, second = Turn(), object(), object()
    assert turn.take(first) and not turn.take(second) and turn.take(first)
    turn.holder = None
    assert turn.take(second)


def test_ctrl_c_never_leaves_a_turn_taken():
    turn, interrupts = Turn(), 300
    inside, ended = threading.Event(), threading.Event()

    def interrupt(number, frame) -> None:
        if inside.is_set():
            inside.clear()
            raise KeyboardInterrupt

    def send() -> None:
        while not ended.is_set():
            if inside.wait(0.1):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.0002)

    before = signal.signal(signal.SIGINT, interrupt)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        for _ in range(interrupts):
            try:
                inside.set()
                while True:
                    token = object()
                    try:
                        assert turn.take(token)
                    finally:
                        if turn.holder is token:
                            turn.holder = None
            except KeyboardInterrupt:
                assert turn.holder is None
    finally:
        inside.clear()
        ended.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
