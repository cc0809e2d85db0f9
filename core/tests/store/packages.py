"""Prints the folder with the packages of `requirements.txt`, which carry servers of Valkey and Redis for the tests of all languages. They
have an environment of their own, which is made when it is missing or the list has changed."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

LIST = Path(__file__).resolve().parent / "requirements.txt"
CACHE = LIST.parents[3] / ".cache"
FOLDER, STAMP = CACHE / "python/stores", CACHE / "python-stores.stamp"


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.returncode}\n{done.stdout}")
    return done.stdout.strip()


CACHE.joinpath("python").mkdir(parents=True, exist_ok=True)
python, wanted = str(FOLDER / "bin/python"), LIST.read_text()
# Other tests may want the same at once.
with open(CACHE / "python-stores.lock", "w") as turn:
    fcntl.flock(turn, fcntl.LOCK_EX)
    if not Path(python).exists() or not STAMP.exists() or STAMP.read_text() != wanted:
        shutil.rmtree(FOLDER, ignore_errors=True)
        run(sys.executable, "-m", "venv", str(FOLDER))
        # The programs alone, without clients for Python.
        pip = ["-m", "pip", "--disable-pip-version-check", "--retries", "10", "install", "--quiet", "--no-deps"]
        run(python, *pip, "--requirement", str(LIST))
        STAMP.write_text(wanted)
print(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"))
