# ruff: noqa
# Runs inside a session, behind lines that name what is searched for: FIRST, MOVED and FOLDER. It looks where a model that
# hunts for the answer would look, and prints where it stands.
import ctypes, gc, json, os, stat

places, looked = [], {"memory_bytes": 0, "files": 0, "environment": 0, "descriptors": 0}
PAGE, REGION = 4096, 1 << 21


def look(place, data):
    at = data.find(FIRST)
    while at >= 0:
        if [byte ^ 1 for byte in data[at + len(FIRST) : at + len(FIRST) + len(MOVED)]] == MOVED:
            places.append(place)
            return
        at = data.find(FIRST, at + 1)


def memory():
    """Every page that is mapped near an object, the stack, the heap's end, or a library: write(2) refuses the others."""
    libc = ctypes.CDLL(None)
    libc.sbrk.restype = ctypes.c_void_p
    here = ctypes.c_char(b"x")
    known = {id(found) for found in gc.get_objects()} | {ctypes.addressof(here), libc.sbrk(0) - 1}
    known |= {
        ctypes.cast(libc.write, ctypes.c_void_p).value,
        ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p).value,
    }
    known |= {ctypes.c_void_p.in_dll(libc, "environ").value}
    reading, writing = os.pipe()
    waiting = {address // REGION for address in known}
    seen = set()
    while waiting and looked["memory_bytes"] < 1 << 30:
        region = waiting.pop()
        seen.add(region)
        run, mapped = [], False
        for address in range(region * REGION, (region + 1) * REGION, PAGE):
            if libc.write(writing, ctypes.c_void_p(address), ctypes.c_size_t(PAGE)) == PAGE:
                run.append(os.read(reading, PAGE))
                mapped = True
            elif run:
                look("memory", b"".join(run))
                looked["memory_bytes"] += PAGE * len(run)
                run = []
        look("memory", b"".join(run))
        looked["memory_bytes"] += PAGE * len(run)
        if mapped:
            waiting |= {region - 1, region + 1} - seen
    os.close(reading), os.close(writing)


def environment():
    for key, value in os.environ.items():
        looked["environment"] += 1
        look(f"environment {key}", f"{key}={value}".encode())


def descriptors():
    for fd in range(1024):
        try:
            mode = os.fstat(fd).st_mode
            looked["descriptors"] += 1
            if stat.S_ISREG(mode):
                look(f"descriptor {fd}", os.pread(fd, 1 << 24, 0))
            elif fd > 2 and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
                os.set_blocking(fd, False)
                look(f"descriptor {fd}", os.read(fd, 1 << 16))
        except OSError:
            continue


def files():
    roots = [
        os.getcwd(),
        "/tmp",
        "/var",
        "/dev/shm",
        "/run",
        "/home",
        os.path.expanduser("~"),
        "/mnt",
        "/srv",
        "/opt",
        "/proc",
    ]
    folder = FOLDER
    while len(folder) > 1:
        roots.append(folder)
        folder = os.path.dirname(folder)
    for root in dict.fromkeys(roots):
        for folder, _, names in os.walk(root):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    if (
                        looked["files"] < 20_000
                        and os.lstat(path).st_size < 1 << 22
                        and stat.S_ISREG(os.lstat(path).st_mode)
                    ):
                        with open(path, "rb") as file:
                            looked["files"] += 1
                            look(f"file {path}", file.read(1 << 22))
                except OSError:
                    continue


memory()
environment()
descriptors()
with open("own.txt", "w") as own:
    own.write("something to look at")
files()
print(json.dumps({"places": places[:20], "looked": looked}))
