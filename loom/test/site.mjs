// Machines of a testbed: for each a namespace of the network and of mounts, with an
// address, a host key and an sshd of its own, and one where the lab service runs.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { sleep, until } from "./rig.mjs";

function run(...argv) {
  const r = spawnSync(argv[0], argv.slice(1), { encoding: "utf8", timeout: 60000 });
  if (r.status !== 0) throw new Error(`${argv.join(" ")}: ${r.stderr || r.error}`);
  return r.stdout;
}

export class Site {
  constructor(rig) {
    this.rig = rig;
    this.spaces = [];
  }

  path(name) {
    return join(this.rig.dir, `site-${name}`);
  }

  write(name, text) {
    writeFileSync(this.path(name), text, { mode: 0o600 });
  }

  /** space starts a shell in namespaces of its own, with directories of its own where labs and programs are kept. */
  async space(name, script) {
    const own = `set -e; mount --make-rprivate /; mount -t tmpfs tmpfs /run; mkdir -p /run/sshd /run/netns /var/cache/weft; mount -t tmpfs tmpfs /var/cache/weft; ip link set lo up; touch ${this.path(name + ".ready")}; ${script}`;
    const child = spawn("unshare", ["-n", "-m", "sh", "-c", own], { detached: true, stdio: "ignore" });
    this.spaces.push(child);
    await until(`machine ${name}`, () => existsSync(this.path(name + ".ready")));
    return child.pid;
  }

  in(pid, ...argv) {
    return run("nsenter", "-t", String(pid), "-n", "-m", "--", ...argv);
  }

  /** up makes machines at 198.51.100.1 and so on, and returns their resource file. */
  async up(...machines) {
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", this.path("identity"));
    this.hub = await this.space("hub", "exec sleep infinity");
    this.in(this.hub, "ip", "link", "add", "name", "hub0", "type", "bridge");
    this.in(this.hub, "ip", "addr", "add", "198.51.100.254/24", "dev", "hub0");
    this.in(this.hub, "ip", "link", "set", "hub0", "up");
    let known = "";
    for (const [i, name] of machines.entries()) {
      const [address, port] = [`198.51.100.${i + 1}`, 2201 + i];
      run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", this.path(name + ".key"));
      this.write(name + ".conf", `Port ${port}\nListenAddress ${address}\nHostKey ${this.path(name + ".key")}\nAuthorizedKeysFile ${this.path("identity.pub")}\nPermitRootLogin prohibit-password\nStrictModes no\nPidFile none\nUsePAM no\n`);
      const pid = await this.space(name, `until ip addr show dev eth0 2>/dev/null | grep -q ${address}; do sleep 0.05; done; exec /usr/sbin/sshd -D -f ${this.path(name + ".conf")}`);
      this.in(this.hub, "ip", "link", "add", `to${name}`, "type", "veth", "peer", "name", "eth0", "netns", String(pid));
      this.in(this.hub, "ip", "link", "set", `to${name}`, "master", "hub0", "up");
      this.in(pid, "ip", "link", "set", "eth0", "up");
      this.in(pid, "ip", "addr", "add", `${address}/24`, "dev", "eth0");
      known += `[${address}]:${port} ${readFileSync(this.path(name + ".key.pub"), "utf8")}`;
    }
    this.write("known", known);
    for (const i of machines.keys()) await until("an sshd", () => this.in(this.hub, "sh", "-c", `ssh-keyscan -p ${2201 + i} 198.51.100.${i + 1} 2>/dev/null | grep .`));
    return "machines:\n" + machines.map((name, i) => `  - {name: ${name}, ssh: "root@198.51.100.${i + 1}:${2201 + i}"}\n`).join("");
  }

  /** serve has the lab service of the rig run where it reaches the machines. */
  async serve() {
    this.rig.lab.kill("SIGTERM");
    await until("the lab service's end", () => this.rig.lab.ended !== undefined);
    this.rig.through = { ...this.rig.through, lab: ["nsenter", "-t", String(this.hub), "-n", "-m", "--"] };
    this.rig.lab = this.rig.start("lab", "lab", "serve", "--socket", this.rig.socket, "--allow", "up,down,exec,capture,run", "--ssh-identity", this.path("identity"), "--ssh-known-hosts", this.path("known"));
    delete this.rig.through.lab;
  }

  /** down takes down what is there, ends all machines, and has the lab service run where it did. */
  async down() {
    this.rig.lab.kill("SIGTERM");
    await until("the lab service's end", () => this.rig.lab.ended !== undefined, 20).catch(() => this.rig.lab.kill("SIGKILL"));
    for (const child of this.spaces) {
      spawnSync("nsenter", ["-t", String(child.pid), "-n", "-m", "--", this.rig.weft, "lab", "down", "--all", "--forget"], { timeout: 60000 });
      try {
        process.kill(-child.pid, "SIGKILL"); // it has a session of its own
      } catch {
        // it has ended
      }
    }
    this.rig.serveLabs();
    await sleep(300);
  }
}
