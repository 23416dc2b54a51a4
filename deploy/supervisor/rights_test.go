package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-sdn/weft/internal/rootpart"
)

// serveRights has this process, which is root, limit what the supervisor of a
// directory runs as another user, until the test ends.
func serveRights(t *testing.T, directory string) (path string) {
	t.Helper()
	verbs, err := Rights(directory, stranger)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "rights")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		err = os.Chown(path, stranger, stranger)
	}
	if err != nil {
		t.Fatal(err)
	}
	go rootpart.Server{UID: stranger, Verbs: verbs}.Serve(l)
	t.Cleanup(func() { l.Close(); os.RemoveAll(dir) })
	return path
}

// TestRootPart: a supervisor without privileges limits its processes by the part
// that has them, and leaves no cgroup.
func TestRootPart(t *testing.T) {
	before, _ := filepath.Glob(filepath.Join(findPlaces().memory.parent, "weft-*"))
	out := modest(t, "ROOTPART")
	for _, want := range []string{
		"up true\n", "cpus of the CPUs 0-1000 only ", "in its group true limit 67108864\n", "policy 2\n",
		"then policy 0 nice -5 limit 134217728 []\n", "ended <nil>",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	for _, not := range []string{"refused", "make a cgroup", "does not answer"} {
		if strings.Contains(out, not) {
			t.Errorf("%q in:\n%s", not, out)
		}
	}
	if after, _ := filepath.Glob(filepath.Join(findPlaces().memory.parent, "weft-*")); len(after) > len(before) {
		t.Errorf("cgroups were left: %v, before %v", after, before)
	}
}

// TestRightsAreBounded: the part that is root touches no process of others, and
// no cgroup that is not the supervisor's.
func TestRightsAreBounded(t *testing.T) {
	dir := t.TempDir()
	verbs, err := Rights(dir, stranger)
	if err != nil {
		t.Fatal(err)
	}
	try := func(verb string, r rightsRequest) error {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = verbs[verb](context.Background(), text)
		return err
	}
	theirs := exec.Command("/bin/sleep", "60")
	theirs.Dir, theirs.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	if err := theirs.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { theirs.Process.Kill(); theirs.Wait() }()
	pid, prefix := theirs.Process.Pid, groupPrefix(dir)
	mine := prefix + "a-x"
	if err := try(verbLimit, rightsRequest{Group: mine, Limits: limits{Memory: 64 << 20}}); err != nil {
		t.Fatal(err)
	}
	defer try(verbRemove, rightsRequest{Group: mine})
	for _, c := range []struct {
		verb string
		r    rightsRequest
	}{
		{verbThread, rightsRequest{PID: os.Getpid()}}, {verbSession, rightsRequest{PID: os.Getpid()}}, {verbProcess, rightsRequest{PID: os.Getpid()}},
		{verbThread, rightsRequest{PID: 0}}, {verbThread, rightsRequest{PID: -1}}, {verbThread, rightsRequest{PID: 1}}, {verbProcess, rightsRequest{PID: pid, Started: 1}},
		{verbThread, rightsRequest{PID: pid, Limits: limits{CPUs: "x"}}}, {verbThread, rightsRequest{PID: pid, Limits: limits{Nice: -21}}},
		{verbJoin, rightsRequest{Group: mine, PID: os.Getpid()}}, {verbJoin, rightsRequest{Group: mine, PID: 0}}, {verbJoin, rightsRequest{Group: "a", PID: pid}},
		{verbLimit, rightsRequest{Group: "a", Limits: limits{Memory: 64 << 20}}}, {verbLimit, rightsRequest{Group: prefix + "../a", Limits: limits{Memory: 64 << 20}}}, {verbLimit, rightsRequest{Group: prefix + "a/b", Limits: limits{Memory: 64 << 20}}},
		{verbLimit, rightsRequest{Group: prefix, Limits: limits{Memory: 64 << 20}}}, {verbLimit, rightsRequest{Group: prefix + strings.Repeat("a", 100), Limits: limits{Memory: 64 << 20}}}, {verbLimit, rightsRequest{Group: prefix + "b", Limits: limits{Memory: 5}}}, {verbLimit, rightsRequest{Group: prefix + "b", Limits: limits{Memory: -1}}},
		{verbLimit, rightsRequest{Group: "..", Limits: limits{Memory: 64 << 20}}}, {verbLimit, rightsRequest{Group: mine, Limits: limits{Memory: -1}}}, {verbRemove, rightsRequest{Group: "../" + mine}}, {verbRemove, rightsRequest{Group: ""}},
	} {
		if err := try(c.verb, c.r); err == nil {
			t.Errorf("%s %+v is done", c.verb, c.r)
		}
	}
	if err := try(verbJoin, rightsRequest{Group: mine, PID: pid}); err != nil {
		t.Error(err)
	}
	if err := try(verbThread, rightsRequest{PID: pid, Limits: limits{Nice: 3}}); err != nil {
		t.Error(err)
	}
	if got := strings.Fields(readFile("/proc", fmt.Sprint(pid), "stat"))[18]; got != "3" {
		t.Errorf("nice %s, want 3", got)
	}
	theirs.Process.Kill()
	theirs.Wait()
}
