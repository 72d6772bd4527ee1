"""The moves of platforms between the cells of a cluster."""

import itertools
import re
import time
import zlib

from clients import Client, Refused

# The attempts to end the last move, when there are no more faults.
LAST_ATTEMPTS = 60
# A command that needs longer has failed.
COMMAND_TIMEOUT = 300


# The number of clients that move platforms, each its own ones.
MOVERS = 4


class Mover(Client):
    """Moves one platform after the other to a random cell. A move that a fault ends early is started again."""

    numbers = itertools.count()

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.number = next(self.numbers) % MOVERS

    def work(self):
        platforms = sorted(list(self.history.platforms.values()))
        platforms = [platform for platform in platforms if zlib.crc32(platform.encode()) % MOVERS == self.number]
        if not self.cluster.cells or not platforms:
            self.stop.wait(1)
            return
        platform = self.random.choice(platforms)
        target = self.random.choice(["home", *(cell.name for cell in self.cluster.cells)])
        left = LAST_ATTEMPTS
        while not self.move(platform, target):
            self.history.count("interrupted moves")
            left -= self.stop.is_set()
            if left == 0:
                raise Refused(f"the platform {platform} does not move to {target}")
            time.sleep(1)
        self.stop.wait(self.random.uniform(0, 3))

    def move(self, platform, target):
        """Runs the command. Returns whether the platform is in the cell."""
        status, output = self.cluster.run("move-platform", platform, "--to", target, timeout=COMMAND_TIMEOUT)
        if status == 0:
            pause = re.search(r"changes waited for (\d+) ms", output)
            if pause:
                self.history.count("moves")
                self.history.pauses.append(int(pause[1]))
            return True
        if f"is in the cell {target} already" in output:
            return True
        problem = output.strip().splitlines()[-1:] or ["no output"]
        self.history.count_error("move", re.sub("[0-9a-f-]{8,}", "..", problem[0])[:200])
        return False
