"""The programs that lose nothing, beside each other and on the real eclipse-zenoh."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.programs import endpoint, script
from tests.examples.test_examples import ALONE, MIXED, OURS, example


@pytest.mark.parametrize("packages", [OURS, *MIXED])
def test_a_late_subscriber_is_told_the_past(packages: tuple[str, str], tmp_path: Path) -> None:
    where = endpoint()
    pub = example("z_advanced_pub", packages[0], tmp_path)
    sub = example("z_advanced_sub", packages[1], tmp_path)
    options = ("-l", where, "-i", "100", "--interval", "0.05", "-p", "kept")
    with script(pub, *options, *ALONE) as publisher:
        publisher.says("Declaring AdvancedPublisher on 'demo/example/zenoh-python-pub'...")
        publisher.says("Putting Data ('demo/example/zenoh-python-pub': '[   2] kept')...")
        # Connected when it opens: of what Eclipse's subscriber hears before it can ask for the
        # past, it is never told the past.
        with script(sub, "-e", where, *ALONE) as subscriber:
            subscriber.says("Declaring AdvancedSubscriber on 'demo/example/**'...")
            for number in range(6):
                assert subscriber.says(">>") == (
                    ">> [Subscriber] Received SampleKind.PUT "
                    f"('demo/example/zenoh-python-pub': '[{number:4d}] kept')"
                )
            subscriber.interrupt()
        publisher.interrupt()
