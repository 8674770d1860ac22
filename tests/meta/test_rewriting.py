"""Imports of rooms become imports within the package: in every shape, and nothing beside them."""

import ast
from pathlib import Path

import pytest

from pykafkalog_build.problems import CannotPublish, CannotRewrite
from pykafkalog_build.rewriting import rewrite
from pykafkalog_build.rooms import Rooms
from pykafkalog_build.staging import stage

ROOMS = Rooms(
    names=frozenset({"config", "storage", "broker", "tools"}),
    modules=frozenset(
        {
            *("config", "config.keys", "storage", "storage.log", "storage.log.log"),
            *("storage.paths", "broker", "broker.adopt", "tools", "tools.topics"),
        }
    ),
)


def published(source: str) -> str:
    return rewrite(source.encode(), ROOMS).decode()


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("import storage", "import pykafkalog.storage as storage"),
        ("import storage as s", "import pykafkalog.storage as s"),
        ("import storage.log as x", "import pykafkalog.storage.log as x"),
        ("import config, os", "import pykafkalog.config as config, os"),
        (
            "import os, config as c, storage.log as l",
            "import os, pykafkalog.config as c, pykafkalog.storage.log as l",
        ),
        (
            "import config, \\\n    storage.log as log, sys",
            "import pykafkalog.config as config, \\\n    pykafkalog.storage.log as log, sys",
        ),
        ("from storage import log, paths", "from pykafkalog.storage import log, paths"),
        ("from storage.log import *", "from pykafkalog.storage.log import *"),
        ("from  storage . log import Log", "from  pykafkalog.storage . log import Log"),
        ("from\tstorage import log", "from\tpykafkalog.storage import log"),
        ("from \\\n  storage import log", "from \\\n  pykafkalog.storage import log"),
        (
            "from storage.log import (  # storage.log\n    Log as storage,\n    paths,\n)",
            "from pykafkalog.storage.log import (  # storage.log\n    Log as storage,\n"
            "    paths,\n)",
        ),
        (
            "x = 1; import config; from tools import a; y = 'ü'; import storage.log as l",
            "x = 1; import pykafkalog.config as config; from pykafkalog.tools import a; y = 'ü';"
            " import pykafkalog.storage.log as l",
        ),
        (
            "é = 'ß'; import config  # ä",
            "é = 'ß'; import pykafkalog.config as config  # ä",
        ),
        (
            "if TYPE_CHECKING:\n\tfrom broker.adopt import adopt\nelse:\n\timport broker",
            "if TYPE_CHECKING:\n\tfrom pykafkalog.broker.adopt import adopt\nelse:\n"
            "\timport pykafkalog.broker as broker",
        ),
        (
            "class C:\n  async def f(self):\n    with x:\n      try: import config\n"
            "      except E: from config import a\n      finally:\n        import tools as t\n",
            "class C:\n  async def f(self):\n    with x:\n"
            "      try: import pykafkalog.config as config\n"
            "      except E: from pykafkalog.config import a\n      finally:\n"
            "        import pykafkalog.tools as t\n",
        ),
        (
            "match x:\n  case 1:\n    import config\n",
            "match x:\n  case 1:\n    import pykafkalog.config as config\n",
        ),
        (
            "for x in y: import config\nelse: import tools\n",
            "for x in y: import pykafkalog.config as config\n"
            "else: import pykafkalog.tools as tools\n",
        ),
        ("import config\r\nimport os\r\n", "import pykafkalog.config as config\r\nimport os\r\n"),
        ("x = 1\n\x0cimport config", "x = 1\n\x0cimport pykafkalog.config as config"),
    ],
)
def test_every_shape_of_an_import(source: str, wanted: str) -> None:
    ast.parse(wanted)
    assert published(source) == wanted


@pytest.mark.parametrize(
    "source",
    [
        "import os\nfrom . import config\nfrom .storage import log\nfrom .. import tools\n",
        "import configparser, storages, my.storage, mytools as tools\n",
        "from os import path as storage\nfrom toolshed.tools import tools\n",
        "config = load()\nconfig.keys()\nstorage = config; storage.log.log()\n",
        "# import storage.log\n'''\nfrom storage.log import Log\nimport config\n'''\n",
        "def f():\n    '''Run `import tools`.\n\n    from storage import log\n    '''\n",
        "class C:\n    x = 1\n    'storage.log.log'\n",
        "keys = ['broker.id', 'config.providers', 'broker', 'storage', 'log.dirs']\n",
        "text = 'from storage to broker'\nlong = 'import tax on tools'\n",
        "f'{storage}.log'\nf'see {x} broker.adopt'\nopen('tools').read('config')\n",
        "words = ['-m', name, 'tools']\nlogging.getLogger(__name__)\n",
        "key = 'broker.adopt'  # no module name\n",
        "",
    ],
)
def test_what_imports_no_room_stays_byte_for_byte(source: str) -> None:
    assert published(source) == source


@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        ("x = 1\nimport storage.paths\nstorage.paths.join(a, b)\n", 2, "from storage import paths"),
        ("import os, storage.log.log", 1, "from storage.log import log"),
        ("import_module('tools.topics')", 1, "'tools.topics' names a module"),
        ("import_module(f'tools.{name}')", 1, "'tools.' names a module"),
        ("import_module('storage.log.%s' % name)", 1, "names a module"),
        ("import_module('tools.{}'.format(name))", 1, "names a module"),
        ("name = 'tools.' + name", 1, "'tools.' names a module"),
        ("x = importlib.import_module('tools')", 1, "'tools' names a module"),
        ("__import__('config')", 1, "'config' names a module"),
        ("logging.getLogger('broker')", 1, "'broker' names a module"),
        ("logging.getLogger('storage.anything')", 1, "'storage.anything' names a module"),
        ("files('config') / 'server.properties'", 1, "'config' names a module"),
        ("words = [sys.executable, '-m', 'tools', 'adopt']", 1, "'tools' names a module"),
        ("run(sys.executable, '-m', 'broker')", 1, "'broker' names a module"),
        ("words = ('-m', 'broker.adopt')", 1, "'broker.adopt' names a module"),
        ("def f(log: 'storage.log.log.Log') -> None: ...", 1, "'storage.log.log.Log' names"),
        ("target = (\n    'storage.paths.join'\n)", 2, "'storage.paths.join' names a module"),
        ("exec('from storage.log import Log')", 1, "names a module in a string"),
        ("exec('x = 1\\nimport config\\n')", 1, "names a module in a string"),
        ("exec(f'import tools\\n{code}')", 1, "names a module in a string"),
        ("import (config)", 1, "is no Python"),
        ("x = '''\n", 1, "is no Python"),
        ("# coding: latin-1\nimport config", 1, "is encoded in iso-8859-1"),
        ("\ufeffimport config", 1, "is encoded in utf-8-sig"),
    ],
)
def test_what_cannot_be_rewritten_faithfully_is_refused(
    source: str, line: int, reason: str
) -> None:
    with pytest.raises(CannotRewrite) as refused:
        published(source)
    (problem,) = refused.value.problems
    assert problem.line == line
    assert reason in problem.reason


def project(directory: Path, files: dict[str, str]) -> Path:
    """A project of the two rooms `one` and `two`, with these files."""
    settings = """
        [project]
        readme = "README.md"
        license-files = ["LICENSE"]
        [tool.setuptools.packages.find]
        include = ["pykafkalog", "pykafkalog.*", "one", "one.*", "two"]
    """
    every = {
        "pyproject.toml": settings,
        "README.md": "",
        "LICENSE": "",
        "pykafkalog/__init__.py": "",
        "one/__init__.py": "",
        "one/inner/__init__.py": "",
        "two/__init__.py": "",
    }
    for name, content in {**every, **files}.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(content)
    return directory


def staged(tmp_path: Path, **files: str) -> dict[str, str]:
    here = project(tmp_path / "project", files)
    target = tmp_path / "staged"
    target.mkdir()
    stage(here, target)
    found = (path for path in target.rglob("*") if path.is_file())
    return {str(path.relative_to(target)): path.read_text() for path in found}


def test_rooms_are_staged_within_the_package_with_their_data(tmp_path: Path) -> None:
    files = {
        "pykafkalog/face.py": "from one.inner import a\n",
        "one/inner/a.py": "import two\n",
        "one/data.txt": "import two\n",
        "one/a.pyc": "",
        "two/left.py": "",
        "two/no_package/b.py": "",
        "tests/__init__.py": "",
        "publishing/build.py": "",
    }
    found = staged(tmp_path, **files)
    assert set(found) == {
        *("pyproject.toml", "README.md", "LICENSE"),
        *("pykafkalog/__init__.py", "pykafkalog/face.py"),
        *("pykafkalog/one/__init__.py", "pykafkalog/one/data.txt"),
        *("pykafkalog/one/inner/__init__.py", "pykafkalog/one/inner/a.py"),
        *("pykafkalog/two/__init__.py", "pykafkalog/two/left.py"),
    }
    assert found["pykafkalog/face.py"] == "from pykafkalog.one.inner import a\n"
    assert found["pykafkalog/one/inner/a.py"] == "import pykafkalog.two as two\n"
    assert found["pykafkalog/one/data.txt"] == "import two\n"


def test_all_that_is_wrong_is_told_at_once_with_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(CannotPublish) as refused:
        staged(
            tmp_path,
            **{
                "pykafkalog/two.py": "",
                "one/a.py": "\nimport one.inner\n",
                "one/inner/b.py": "import_module('two')\nimport_module('one')\n",
            },
        )
    first, *lines = str(refused.value).splitlines()
    assert first == "what a wheel would get wrong:"
    assert [line.partition(": ")[0] for line in lines] == [
        "pykafkalog/two.py",
        "one/a.py:2",
        "one/inner/b.py:1",
        "one/inner/b.py:2",
    ]
