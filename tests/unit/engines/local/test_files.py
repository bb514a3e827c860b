"""Journals, segments and messages: what is read is what was written, whatever came in between."""

import os
from pathlib import Path

import pytest

from fairlead.engines.base import LogRequest
from fairlead.engines.local import journal, wire
from fairlead.engines.local.attempts import AttemptFolders
from fairlead.engines.local.logs.reader import decide_begin
from fairlead.engines.local.logs.segments import Index, Segments
from fairlead.engines.local.logs.writer import Output
from fairlead.model.errors import Refused


def written(tmp_path: Path, text: bytes, segment_bytes: int = 1000, segments: int = 5) -> Segments:
    output = Output(f"{tmp_path}/pod/1", segment_bytes, segments)
    output.write(text)
    output.close()
    return Segments(f"{tmp_path}/pod/1")


def read_all(segments: Segments, offset: int = 0) -> bytes:
    pieces: list[bytes] = []
    while True:
        begin, data = segments.read(offset, 777)
        if not data:
            return b"".join(pieces)
        pieces.append(data)
        offset = begin + len(data)


class TestJournal:
    def test_the_last_whole_line_counts(self, tmp_path: Path) -> None:
        path = f"{tmp_path}/a"
        descriptor = journal.claim(path, {"state": "Starting"})
        assert journal.load(path) == {"state": "Starting"}
        journal.append(descriptor, {"state": "Exited"}, durable=True)
        os.write(descriptor, b'{"state": "cut sho')
        os.close(descriptor)
        assert journal.load(path) == {"state": "Exited"}
        journal.add(path, {"state": "Lost"})
        assert journal.load(path) == {"state": "Lost"}

    def test_the_launch_record_is_kept_apart_from_the_state(self, tmp_path: Path) -> None:
        folders = AttemptFolders(str(tmp_path))
        folders.prepare()
        path = folders.journal(("a", 1))
        descriptor = journal.claim(path, {"state": "Starting"}, '{"state":"launched"}')
        journal.append(descriptor, {"state": "Running"})
        os.close(descriptor)
        assert folders.load_record(("a", 1)) == b'{"state":"launched"}'
        assert journal.load(path) == {"state": "Running"}
        Path(path).write_bytes(b'#{"state":"launched"}\n{"state":"Sta')
        assert journal.load(path) is None

    def test_what_the_version_before_launched_is_found_and_removed(self, tmp_path: Path) -> None:
        folders = AttemptFolders(str(tmp_path))
        folders.prepare()
        os.close(journal.claim(folders.journal(("a", 1)), {"state": "Running"}))
        assert folders.load_record(("a", 1)) == b""
        earlier = tmp_path / "pods" / "records" / "a.1"
        earlier.parent.mkdir()
        earlier.write_bytes(b"{}")
        assert folders.load_record(("a", 1)) == b"{}"
        folders.forget(("a", 1))
        assert not earlier.exists()

    def test_an_attempt_is_claimed_once(self, tmp_path: Path) -> None:
        os.close(journal.claim(f"{tmp_path}/a", {}))
        with pytest.raises(FileExistsError):
            journal.claim(f"{tmp_path}/a", {})

    def test_no_journal_and_no_line_say_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "empty").touch()
        assert journal.load(f"{tmp_path}/empty") is None
        assert journal.load(f"{tmp_path}/absent") is None

    def test_a_claim_without_a_line_whose_writer_died_is_dropped(self, tmp_path: Path) -> None:
        folders = AttemptFolders(str(tmp_path))
        folders.prepare()
        place = Path(folders.journal(("a", 1)))
        place.touch()
        os.utime(place, (1, 1))
        os.close(journal.claim(folders.journal(("b", 2)), {"pod": "b"}))
        assert folders.claimed() == [("b", 2)]
        assert not place.exists()


class TestSegments:
    @pytest.mark.parametrize("size", [7, 64, 1000])
    def test_nothing_is_lost_between_segments(self, tmp_path: Path, size: int) -> None:
        text = bytes(range(256))
        segments = written(tmp_path, text, size, 1000)
        assert read_all(segments) == text
        assert segments.end() == 256

    def test_the_oldest_go_first(self, tmp_path: Path) -> None:
        segments = written(tmp_path, b"0123456789", 2, 3)
        assert segments.starts() == [4, 6, 8]
        assert read_all(segments) == b"456789"

    @pytest.mark.parametrize(
        ("text", "tail", "want"),
        [
            (b"a\nb\nc\n", 1, b"c\n"),
            (b"a\nb\nc\n", 2, b"b\nc\n"),
            (b"a\nb\nc\n", 3, b"a\nb\nc\n"),
            (b"a\nb\nc\n", 9, b"a\nb\nc\n"),
            (b"a\nb\nc", 1, b"c"),
            (b"line of text\n" * 5000, 2500, b"line of text\n" * 2500),
            (b"a\nb\nc", 2, b"b\nc"),
            (b"a\nb\nc\n", 0, b""),
            (b"\n\n\n", 2, b"\n\n"),
            (b"", 3, b""),
            (b"x" * 200_000 + b"\ny\n", 1, b"y\n"),
            (b"a\n" + b"x" * 200_000 + b"\n", 1, b"x" * 200_000 + b"\n"),
        ],
    )
    def test_the_last_lines(self, tmp_path: Path, text: bytes, tail: int, want: bytes) -> None:
        segments = written(tmp_path, text, 30_000, 1000)
        begin = decide_begin(segments, LogRequest(pod_id="pod", tail=tail))
        assert read_all(segments, begin) == want

    def test_what_begins_within_a_line_begins_with_the_next(self, tmp_path: Path) -> None:
        segments = written(tmp_path, b"first line\nsecond\nthird\n", 8, 2)
        begin = decide_begin(segments, LogRequest(pod_id="pod"))
        assert read_all(segments, begin) == b"second\nthird\n"

    def test_times_grow_with_offsets(self, tmp_path: Path) -> None:
        segments = written(tmp_path, b"x" * 100, 10, 100)
        index = Index(segments)
        index.refresh()
        index.refresh()
        times = [index.time_of(offset) for offset in range(100)]
        assert times == sorted(times)
        assert times[0] > 0
        assert index.offset_at(0, 100) == 0
        assert index.offset_at(times[-1] + 1, 100) == 100


class TestWire:
    def test_messages_come_whole_from_any_pieces(self) -> None:
        messages: list[wire.Message] = [{"op": "stop", "grace": 3}, {}, {"text": "ü" * 1000}]
        stream = b"".join(map(wire.encode, messages))
        for size in (1, 2, 3, 1000, len(stream)):
            inbox = wire.Inbox()
            pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
            assert [message for piece in pieces for message in inbox.feed(piece)] == messages

    def test_nonsense_is_not_a_message(self) -> None:
        with pytest.raises(ValueError, match="bytes"):
            list(wire.Inbox().feed(b"\xff\xff\xff\xff"))

    def test_addresses_can_be_long(self, tmp_path: Path) -> None:
        folder = tmp_path / ("x" * 100) / ("y" * 100)
        folder.mkdir(parents=True)
        with wire.listen(f"{folder}/socket") as listener, wire.connect(f"{folder}/socket") as link:
            link.send(b"hello")
            peer, _ = listener.accept()
            with peer:
                peer.setblocking(True)
                assert peer.recv(5) == b"hello"


@pytest.mark.parametrize("pod", ["../etc", "a/b", "", "a.b"])
def test_ids_never_lead_out_of_the_folder(tmp_path: Path, pod: str) -> None:
    with pytest.raises(Refused):
        AttemptFolders(str(tmp_path)).journal((pod, 1))
