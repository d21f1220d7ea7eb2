"""Inside a process: the interpreter's lock, Ctrl-C, threads, fork, memory, libraries that were there."""

import gc
import os
import threading
import unittest

from common import TINY, aha, np, pixels, run_python

SLOW = "rise:masks=1000000"  # minutes


class Process(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.m = aha.load(TINY)

    def test_other_threads_run_while_a_map_is_made(self):
        session = aha.Session(quiet=True)
        slow = aha.Explainer(SLOW, session.load(TINY))
        started = threading.Event()
        ended = []

        def explain():
            started.set()
            try:
                slow(pixels(1))
            except aha.Canceled as error:
                ended.append(error)

        thread = threading.Thread(target=explain)
        thread.start()
        started.wait()
        count = 0
        for _ in range(2000000):  # all of it while the other thread is inside the call
            count += 1
        self.assertTrue(thread.is_alive())
        session.cancel()
        while thread.is_alive():  # the call may not have begun when it was canceled
            thread.join(0.05)
            session.cancel()
        self.assertEqual(count, 2000000)
        self.assertEqual(len(ended), 1)
        self.assertIsInstance(ended[0], aha.Error)

    def test_ctrl_c_ends_a_call_and_the_next_one_works(self):
        out = run_python(
            """
import aha, numpy as np, os, signal, sys, threading
m = aha.load(sys.argv[1])
x = np.ones((1, 3, 32, 32), np.float32)
def wait_for_turn(call):  # a second thread of the same session keeps it busy
    pass
for target in (m, aha.load(lambda x: x.mean((2, 3)), size=32)):
    slow = aha.Explainer(sys.argv[2], target)
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        slow(x)
        print("no end")
    except KeyboardInterrupt:
        print("interrupted")
busy = threading.Thread(target=lambda: slow(x), daemon=True)
busy.start()
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        m.logits(x)  # waits for the session until it is interrupted
except KeyboardInterrupt:
    print("interrupted while waiting")
m.session.cancel()
busy.join()
print(aha.Explainer("chefer", m)(x).shape)
""",
            TINY,
            SLOW,
        ).stdout
        self.assertEqual(
            out.split("\n")[:4], ["interrupted", "interrupted", "interrupted while waiting", "(1, 32, 32)"]
        )

    def test_a_daemon_thread_in_a_call_does_not_keep_the_interpreter(self):
        run_python(
            """
import aha, numpy as np, sys, threading, time
slow = aha.Explainer(sys.argv[2], aha.load(lambda x: x.mean((2, 3)), size=32))
threading.Thread(target=lambda: slow(np.ones((1, 3, 32, 32), np.float32)), daemon=True).start()
time.sleep(0.3)
""",
            TINY,
            SLOW,
        )

    def test_two_threads_and_two_sessions_get_the_maps_of_one(self):
        x = pixels(2)
        wanted = aha.Explainer("chefer", self.m)(x)
        models = [
            self.m,
            self.m,
            aha.Session(threads=1, quiet=True).load(TINY),
            aha.Session(threads=2, quiet=True).load(TINY),
        ]
        found = [None] * len(models)

        def explain(i):
            e = aha.Explainer("chefer", models[i])
            found[i] = [e(x) for _ in range(5)]

        threads = [threading.Thread(target=explain, args=(i,)) for i in range(len(models))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for maps in found:
            for a in maps:
                np.testing.assert_array_equal(a, wanted)

    def test_a_child_of_fork_is_told_to_load_again_and_can(self):
        out = run_python(
            """
import aha, numpy as np, os, sys, threading, time
m = aha.load(sys.argv[1])
x = np.ones((1, 3, 32, 32), np.float32)
wanted = aha.Explainer("chefer", m)(x)
slow = aha.Explainer(sys.argv[2], aha.Session(quiet=True).load(sys.argv[1]))
busy = threading.Thread(target=lambda: slow(x), daemon=True)
busy.start()
time.sleep(0.5)  # somebody computes while the process forks
child = os.fork()
if child == 0:
    try:
        m.logits(x)
    except aha.Error as error:
        print(error)
    print(np.array_equal(aha.Explainer("chefer", aha.load(sys.argv[1]))(x), wanted), flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
""",
            TINY,
            SLOW,
        ).stdout
        self.assertIn("before the process forked", out)
        self.assertEqual(out.split("\n")[1:3], ["True", "0"])

    def test_memory_does_not_grow_with_calls(self):
        e, x = aha.Explainer("chefer", self.m), pixels(1)
        flat = aha.Explainer("rise", aha.load(lambda x: x.mean((2, 3)), size=32), masks=8)

        def call(times):
            for _ in range(times):
                e(x)
                e.explain(x, score=False)
                flat(x, 0)
                aha.overlay(x, x[:, 0])
                try:
                    e(x * 2)
                except aha.InputError:
                    pass
            gc.collect()
            with open("/proc/self/statm", encoding="ascii") as statm:
                return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")

        call(50)
        before = call(10)
        grown = call(200) - before
        self.assertLess(grown, 200 * x.nbytes, f"{grown} bytes in 200 rounds")  # less than one image each

    def test_a_slow_openblas_that_was_there_before_is_told_once_and_not_where_aha_came_first(self):
        with open("/proc/cpuinfo", encoding="ascii") as info:
            if "avx2" not in info.read():
                self.skipTest("no core of OpenBLAS is below this CPU")
        code = """
import aha, sys
m = aha.load(sys.argv[1])
for _ in range(3):
    aha.Explainer("chefer", m)(np.ones((1, 3, 32, 32), np.float32))
aha.load(sys.argv[1], session=aha.Session(threads=1))
"""
        # As on a CPU that OpenBLAS does not know; nobody has chosen the core when aha looks.
        first = """
import os
os.environ["OPENBLAS_CORETYPE"] = "PRESCOTT"
import numpy as np
np.dot(np.ones((64, 64)), np.ones((64, 64)))
del os.environ["OPENBLAS_CORETYPE"]
if not any("openblas" in line for line in open("/proc/self/maps")):
    print("OpenBLAS was loaded before: in a test without it", file=os.sys.stderr)
    os._exit(0)
"""
        told = run_python(first + code, TINY).stderr
        self.assertEqual(told.count("OpenBLAS was loaded before"), 1, told)
        environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
        not_told = run_python("import aha\nimport numpy as np\n" + code, TINY, **environment).stderr
        self.assertEqual(not_told, "")

    def test_sessions_of_different_threads_leave_numpys_threads_alone(self):
        code = """
import aha, ctypes, numpy as np, sys
np.dot(np.ones((64, 64)), np.ones((64, 64)))
blas = [line.split()[-1] for line in open("/proc/self/maps") if "openblas" in line]
if not blas: sys.exit()
count = ctypes.CDLL(blas[0]).openblas_get_num_threads
before = count()
x = np.ones((1, 3, 32, 32), np.float32)
for threads in (1, 2, 1):
    aha.Explainer("chefer", aha.Session(threads=threads).load(sys.argv[1]))(x)
    assert count() == before, (count(), before)
"""
        run_python(code, TINY)


if __name__ == "__main__":
    unittest.main()
