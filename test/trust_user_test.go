package test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/test/testbed"
)

// rights is what a process may do, as the kernel has it.
type rights struct{ uid, gid, groups, caps, gains string }

func rightsOf(t *testing.T, pid int) rights {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	field := func(name string) string {
		_, rest, _ := strings.Cut("\n"+string(text), "\n"+name+":")
		line, _, _ := strings.Cut(rest, "\n")
		return strings.Join(strings.Fields(line), " ")
	}
	return rights{field("Uid"), field("Gid"), field("Groups"), field("CapInh") + field("CapPrm") + field("CapEff") + field("CapAmb"), field("NoNewPrivs")}
}

// asUser returns the rights of a process that has left root for good.
func asUser(uid int) rights {
	return rights{fmt.Sprintf("%[1]d %[1]d %[1]d %[1]d", uid), fmt.Sprintf("%[1]d %[1]d %[1]d %[1]d", uid), "", strings.Repeat("0", 64), "1"}
}

// rootParts returns the processes below a controller that have stayed root.
func rootParts(controller int) (list []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), fmt.Sprintf("\nPPid:\t%d\n", controller)) && strings.Contains(string(text), "\nUid:\t0\t") {
			var pid int
			fmt.Sscanf(file, "/proc/%d/", &pid)
			list = append(list, pid)
		}
	}
	return list
}

func exists(pid int) bool { return syscall.Kill(pid, 0) == nil }

// strays returns the files of a data directory that are not a user's.
func strays(t *testing.T, dir string, uid int) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // the controller runs
		}
		var st syscall.Stat_t
		if err == nil {
			if err = syscall.Lstat(path, &st); os.IsNotExist(err) {
				return nil
			}
		}
		if err == nil && int(st.Uid) != uid {
			list = append(list, fmt.Sprintf("%s of %d", path, st.Uid))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return list
}

// userFree is the user whom a controller becomes that has no other.
const userFree = 64653

// trustUser has root start controllers, which must not stay root, and yet limit
// processes and make queues.
func trustUser(t *testing.T, f *faults) {
	t.Run("split", func(t *testing.T) { t.Parallel(); userOfPlan(t, f) })
	t.Run("single", func(t *testing.T) { t.Parallel(); userOfOne(t, f) })
	t.Run("without-root", func(t *testing.T) { t.Parallel(); userWithoutRoot(t, f) })
	t.Run("refused", func(t *testing.T) { t.Parallel(); userRefused(t, f) })
}

func userOfPlan(t *testing.T, f *faults) {
	d := f.prepare(t, `name: limited
workers:
  edge: {services: [southbound, discovery, hosts], class: realtime}
  routing: {services: [paths, forwarding], memory: 512MiB, cpus: "0", nice: -3}
  rest: {services: [flowrules, qos, stats, gateway]}
`)
	topo, err := topology.Resolve("linear:1")
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Up(context.Background(), topo, lab.Options{
		Name: fmt.Sprintf("u%d", time.Now().UnixNano()%1e9), Temporary: true, Controllers: []string{"tcp:" + d.openflow}, KeeperCommand: []string{os.Args[0]},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	database := l.Dir() + "/db.sock"
	if err := os.Chmod(database, 0o600); err != nil { // as packages of Open vSwitch have it
		t.Fatal(err)
	}
	d.flags = []string{"--set", "qos.ovsdb=unix:" + database}
	data := filepath.Join(d.dir, "data")

	// check checks whose everything is, and that limits are in force.
	check := func(controller *testbed.Process) {
		t.Helper()
		for _, w := range d.allUp().Workers {
			if got := rightsOf(t, int(w.Pid)); got != asUser(userFree) {
				t.Errorf("process %s: %+v", w.Process, got)
			}
			if len(w.Unapplied) > 0 {
				t.Errorf("process %s is without %q", w.Process, w.Unapplied)
			}
		}
		if got := rightsOf(t, controller.PID()); got != asUser(userFree) {
			t.Errorf("the supervisor: %+v", got)
		}
		if parts := rootParts(controller.PID()); len(parts) != 1 {
			t.Errorf("processes %v have stayed root; want one", parts)
		}
		if list := strays(t, data, userFree); len(list) > 0 {
			t.Errorf("not the user's: %q", list)
		}
		pids := d.pids()
		stat := func(process string) []string {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pids[process]))
			if err != nil {
				t.Fatal(err)
			}
			return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		}
		if s := stat("edge"); s[38] != "2" {
			t.Errorf("edge has scheduling policy %s, want 2, SCHED_RR", s[38])
		}
		if s := stat("routing"); s[16] != "-3" {
			t.Errorf("routing has nice %s, want -3", s[16])
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pids["routing"]))
		if !strings.Contains(string(status), "\nCpus_allowed_list:\t0\n") {
			t.Errorf("routing has other processors than 0: %s", status)
		}
		if got := memoryLimit(t, pids["routing"]); got != 512<<20 {
			t.Errorf("routing has a memory limit of %d, want %d", got, 512<<20)
		}
	}
	queues := func(rate string) {
		t.Helper()
		eventually(t, "the switch connected", func() bool {
			out, err := d.command(context.Background(), "get", "switches")
			return err == nil && strings.Contains(string(out), "connected")
		})
		if out, err := d.command(context.Background(), "qos", "queues", "set", "--switch", "1", "--port", "1", "--max-rate", "10000", "--queue", "1:"+rate); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		rows := ""
		eventually(t, "the queue made", func() bool {
			rows, err = l.VSCtl(context.Background(), "list", "queue")
			return err == nil && strings.Contains(rows, rate+"000")
		})
	}

	// An earlier run was root's.
	flags := d.flags
	d.flags = append(slices.Clone(flags), "--user", "root")
	earlier := d.supervise()
	d.allUp()
	earlier.Stop()
	d.flags = flags

	first := d.supervise()
	check(first)
	queues("2000")

	// One that is killed comes back with its rights and limits.
	old := d.pids()["routing"]
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "routing again", func() bool { p := d.pids()["routing"]; return p != 0 && p != old })
	check(first)

	// So it is if the supervisor is killed: the part that is root ends with it,
	// and the next supervisor has another, which those that went on ask.
	part := rootParts(first.PID())[0]
	before := d.pids()
	if err := syscall.Kill(first.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the part that is root", func() bool { return !exists(part) })
	second := d.supervise()
	check(second)
	if after := d.pids(); after["rest"] != before["rest"] || after["routing"] != before["routing"] {
		t.Errorf("processes %v, before %v", after, before)
	}
	queues("3000")
	part = rootParts(second.PID())[0]
	second.Stop()
	eventually(t, "the end of the part that is root", func() bool { return !exists(part) })
	if left := d.pids(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// memoryLimit returns the limit of the memory cgroup in which a process is, in
// octets; 0 if it is not known.
func memoryLimit(t *testing.T, pid int) (octets int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for _, file := range []string{"/sys/fs/cgroup/memory/" + part[2] + "/memory.limit_in_bytes", "/sys/fs/cgroup/" + part[2] + "/memory.max"} {
			b, err := os.ReadFile(file)
			if _, scanned := fmt.Sscan(string(b), &octets); err == nil && scanned == nil && (part[1] == "" || slices.Contains(strings.Split(part[1], ","), "memory")) {
				return octets
			}
		}
	}
	return 0
}

func userOfOne(t *testing.T, f *faults) {
	d := f.prepare(t, "")
	data := filepath.Join(d.dir, "data")
	begin := func(args ...string) *testbed.Process {
		t.Helper()
		p := d.run("weft", d.weft, append([]string{"up", "--data-dir", data, "--quiet", "--listen", d.openflow, "--http", d.north}, args...)...)
		eventually(t, "the controller up", func() bool {
			if err := p.Ended(); err != nil {
				t.Fatal(p.Failed(err))
			}
			_, err := d.command(context.Background(), "get", "switches")
			return err == nil
		})
		return p
	}
	// A data directory of earlier runs as root is handed over.
	p := begin("--user", "root")
	if got := rightsOf(t, p.PID()); got.uid != "0 0 0 0" {
		t.Errorf("--user root: %+v", got)
	}
	if out, err := d.command(context.Background(), "flow", "add", "--switch", "1", "--priority", "7"); err != nil {
		t.Errorf("%v %s", err, out)
	}
	p.Stop()
	for _, uid := range []int{userFree, userFree, 64000, 64000} {
		args := []string{}
		if uid != userFree {
			args = []string{"--user", fmt.Sprint(uid)}
		}
		p := begin(args...)
		if got := rightsOf(t, p.PID()); got != asUser(uid) {
			t.Errorf("%+v, want user %d", got, uid)
		}
		if list := strays(t, data, uid); len(list) > 0 {
			t.Errorf("not the user's: %q", list)
		}
		if parts := rootParts(p.PID()); len(parts) != 1 {
			t.Errorf("processes %v have stayed root; want one", parts)
		}
		// Root is let in, and what was kept is still there.
		kept, err := api.NewFlowrulesClient(d.conn).ListFlows(context.Background(), &api.ListFlowsRequest{})
		if err != nil || len(kept.Flows) != 1 || kept.Flows[0].Flow.Priority != 7 {
			t.Errorf("as user %d: %v %v", uid, err, kept)
		}
		// Another controller on the same data is refused, and does the first no harm.
		users := [][]string{nil}
		if uid == 64000 {
			users = [][]string{{"--user", "root"}, {"--user", "64001"}}
		}
		for _, user := range users {
			other := d.run("other", d.weft, append([]string{"up", "--data-dir", data, "--quiet", "--listen", freeAddress(t), "--http", freeAddress(t)}, user...)...)
			eventually(t, "the end of the other", func() bool { return other.Ended() != nil })
			if text := other.Failed(other.Ended()).Error(); !strings.Contains(text, "is in use by process") || strings.Contains(text, "--user root") {
				t.Errorf("a second controller, %q: %s", user, text)
			}
		}
		if list := strays(t, data, uid); len(list) > 0 {
			t.Errorf("the others have taken %q", list)
		}
		if parts := rootParts(p.PID()); len(parts) != 1 {
			t.Errorf("processes %v have stayed root; want one", parts)
		}
		p.Stop()
	}
	if list := strays(t, data, 64000); len(list) > 0 { // the owner of the data directory, from now on
		t.Errorf("not the user's: %q", list)
	}
	p = begin()
	if got := rightsOf(t, p.PID()); got != asUser(64000) {
		t.Errorf("%+v, want the data directory's owner", got)
	}
}

// userWithoutRoot has a user who is not root run a plan that wants more than he
// may have.
func userWithoutRoot(t *testing.T, f *faults) {
	const uid = 65531
	d := f.prepare(t, "name: modest\nworkers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway], class: realtime, nice: -5, memory: 512MiB}\n")
	data := filepath.Join(d.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, uid, uid); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(os.TempDir(), fmt.Sprintf("weft-modest-%d", os.Getpid()))
	text, err := os.ReadFile(d.weft)
	if err != nil {
		t.Fatal(err)
	}
	testprogram.Install(t, program, text)
	t.Cleanup(func() { os.Remove(program) })
	p := d.run("weft", "setpriv", "--reuid", fmt.Sprint(uid), "--regid", fmt.Sprint(uid), "--clear-groups", program,
		"up", d.plan, "--data-dir", data, "--quiet", "--listen", d.openflow, "--http", d.north)
	w := d.allUp().Workers[0]
	if got := rightsOf(t, int(w.Pid)).uid; !strings.HasPrefix(got, fmt.Sprint(uid)) {
		t.Errorf("uid %s", got)
	}
	if parts := rootParts(p.PID()); len(parts) > 0 {
		t.Errorf("processes %v are root", parts)
	}
	said := strings.Join(w.Unapplied, "\n")
	for _, want := range []string{"real-time: ", "nice: ", "CAP_SYS_NICE", "memory: make a cgroup", "needs root"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in what could not be applied:\n%s", want, said)
		}
	}
}

// userRefused has controllers started that cannot leave root, which must say what
// is wrong and what to do, and must not give away what is not theirs.
func userRefused(t *testing.T, f *faults) {
	dir := openDir(t)
	fails := func(what, want string, args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
		defer cancel()
		out, err := exec.CommandContext(ctx, f.weft, append([]string{"up", "--quiet", "--listen", freeAddress(t), "--http", freeAddress(t)}, args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v %s; want %s", what, err, out, want)
		}
	}
	make := func(name, file string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, file), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	owner := func(path string) uint32 {
		t.Helper()
		var st syscall.Stat_t
		if err := syscall.Lstat(path, &st); err != nil {
			t.Fatal(err)
		}
		return st.Uid
	}
	home := make("home", "letters")
	fails("a directory with other files", "not the controller's: letters", "--data-dir", home)
	linked := make("linked", "lock")
	if err := os.Link(filepath.Join(linked, "lock"), filepath.Join(dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	fails("a hard link", "hard link", "--data-dir", linked)
	aside := make("aside", "bus.secret")
	if err := os.Symlink(filepath.Join(home, "letters"), filepath.Join(aside, "room")); err != nil {
		t.Fatal(err)
	}
	fails("a symbolic link", "neither a file nor a directory", "--data-dir", aside)
	for _, path := range []string{home, filepath.Join(home, "letters"), filepath.Join(dir, "elsewhere")} {
		if uid := owner(path); uid != 0 {
			t.Errorf("%s is user %d's now", path, uid)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	fails("a directory below root's", "chmod o+x", "--data-dir", filepath.Join(dir, "closed", "data"))
	secret := filepath.Join(dir, "weft.yaml")
	if err := os.WriteFile(secret, []byte("hosts: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails("a configuration of root's", "permission denied", "--data-dir", filepath.Join(dir, "refused", "data"), "--config", secret)
	fails("a wrong setting", "unknown key", "--data-dir", filepath.Join(dir, "refused", "data"), "--set", "hosts.none=1")
	eventually(t, "no directory left of them", func() bool {
		_, err := os.Lstat(filepath.Join(dir, "refused"))
		_, err2 := os.Lstat(filepath.Join(dir, "closed", "data"))
		return os.IsNotExist(err) && os.IsNotExist(err2)
	})
	token := filepath.Join(home, "letters")
	fails("a file of root's", "--user root", "--data-dir", filepath.Join(dir, "one"), "--set", "gateway.token_file="+token)
	fails("a user that is not there", "there is no such user", "--data-dir", filepath.Join(dir, "one"), "--user", "no-such-user")
	fails("root's group", "its group is root's", "--data-dir", filepath.Join(dir, "one"), "--user", "64000:0")
	eventually(t, "no part that is root left of them", func() bool {
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		return !slices.ContainsFunc(files, func(file string) bool {
			line, _ := os.ReadFile(file)
			status, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
			return string(line) == f.weft+"\x00root-part\x00" && strings.Contains(string(status), "\nPPid:\t1\n")
		})
	})
}
