"""Both wheels, made once."""

from __future__ import annotations

import zipfile

import pytest

from tests.build.made import build
from tools.compiled_tree import WHEELS, build_wheel, fingerprint, is_fresh


@pytest.fixture(scope="module")
def pure(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("pure")
    done = build(folder, ZENLAKE_BUILD="pure")
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    # `make` has just built it. Without `make`, leave the tree alone: it may be what runs us.
    if is_fresh(fingerprint()):
        (wheel,) = WHEELS.glob("*.whl")
        return zipfile.ZipFile(wheel)
    return zipfile.ZipFile(build_wheel(tmp_path_factory.mktemp("compiled")))
