package testbed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/internal/testwait"
)

func TestMain(m *testing.M) {
	status := m.Run()
	testprogram.Remove()
	os.Exit(status)
}

// site is a network of machines: a namespace of the network (and of mounts) for each, with
// an address, a host key and an sshd of its own, and one where weft is called.
type site struct {
	t       *testing.T
	weft    string
	dir     string
	hub     int // pid of the namespaces where weft is called
	servers map[string]*exec.Cmd
}

// newSite makes a machine for each address, 198.51.100.N/24, by its name.
func newSite(t *testing.T, machines ...string) *site {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test needs root")
	}
	s := &site{t: t, weft: testprogram.Weft(t), dir: t.TempDir(), servers: map[string]*exec.Cmd{}}
	s.do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.path("identity"))
	hub := s.space("hub", "sleep infinity")
	s.hub = hub.Process.Pid
	s.in(s.hub, "ip", "link", "add", "name", "hub0", "type", "bridge")
	s.in(s.hub, "ip", "addr", "add", "198.51.100.254/24", "dev", "hub0")
	s.in(s.hub, "ip", "link", "set", "hub0", "up")
	var known bytes.Buffer
	for i, name := range machines {
		s.do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.path(name+".key"))
		address := fmt.Sprintf("198.51.100.%d", i+1)
		config := fmt.Sprintf("Port %d\nListenAddress %s\nHostKey %s\nAuthorizedKeysFile %s\nPermitRootLogin prohibit-password\nStrictModes no\nPidFile none\nUsePAM no\n",
			2201+i, address, s.path(name+".key"), s.path("identity.pub"))
		s.write(name+".conf", config)
		// The address comes when the interface is there; so does sshd.
		k := s.space(name, fmt.Sprintf("until ip addr show dev eth0 2>/dev/null | grep -q %s; do sleep 0.05; done; /usr/sbin/sshd -D -e -f %s 2>%s",
			address, s.path(name+".conf"), s.path(name+".log")))
		s.servers[name] = k
		pid := fmt.Sprint(k.Process.Pid)
		s.in(s.hub, "ip", "link", "add", "to"+name, "type", "veth", "peer", "name", "eth0", "netns", pid)
		s.in(s.hub, "ip", "link", "set", "to"+name, "master", "hub0", "up")
		s.in(k.Process.Pid, "ip", "link", "set", "eth0", "up")
		s.in(k.Process.Pid, "ip", "addr", "add", address+"/24", "dev", "eth0")
		key, err := os.ReadFile(s.path(name + ".key.pub"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&known, "[%s]:%d %s", address, 2201+i, key)
	}
	s.write("known_hosts", known.String())
	for i := range machines {
		s.await(fmt.Sprintf("198.51.100.%d:%d", i+1, 2201+i))
	}
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string) string {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return s.path(name)
}

func (s *site) do(argv ...string) {
	s.t.Helper()
	if out, err := exec.CommandContext(s.t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v: %s", strings.Join(argv, " "), err, out)
	}
}

// space starts a shell in namespaces of its own, with directories of its own where labs
// and programs are kept; all that runs there ends with the test.
func (s *site) space(name, script string) *exec.Cmd {
	s.t.Helper()
	script = "set -e; mount --make-rprivate /; mount -t tmpfs tmpfs /run; mkdir -p /run/sshd /run/netns; mkdir -p /var/cache/weft; mount -t tmpfs tmpfs /var/cache/weft; ip link set lo up; touch " +
		s.path(name+".ready") + "; " + script
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET, Setsid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		down := exec.Command("nsenter", "-t", fmt.Sprint(cmd.Process.Pid), "-n", "-m", "--", s.weft, "lab", "down", "--all", "--forget")
		if out, err := down.CombinedOutput(); err != nil {
			s.t.Errorf("machine %s: %v: %s", name, err, out)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it has a session of its own
		_ = cmd.Wait()
	})
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(s.path(name + ".ready")); err == nil {
			return cmd
		}
		if time.Now().After(end) {
			s.t.Fatalf("machine %s does not start", name)
		}
	}
}

// in runs a command in the namespaces of a process.
func (s *site) in(pid int, argv ...string) {
	s.t.Helper()
	s.do(append([]string{"nsenter", "-t", fmt.Sprint(pid), "-n", "-m", "--"}, argv...)...)
}

// out runs a command in the namespaces of a process and returns what it wrote.
func (s *site) out(pid int, argv ...string) string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "nsenter", append([]string{"-t", fmt.Sprint(pid), "-n", "-m", "--"}, argv...)...).Output()
	if err != nil {
		s.t.Fatalf("%s: %v", strings.Join(argv, " "), err)
	}
	return string(out)
}

// await waits for somebody to answer at an address of the site.
func (s *site) await(address string) {
	s.t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.in(s.hub, "sh", "-c", `for i in $(seq 200); do ssh-keyscan -p "$2" "$1" 2>/dev/null | grep -q . && exit 0; sleep 0.05; done; exit 1`, "sh", host, port)
}

// lab runs `weft lab ARGS` where weft is called; fails if its exit status is another one.
func (s *site) lab(status int, args ...string) (string, string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "nsenter", append([]string{"-t", fmt.Sprint(s.hub), "-n", "-m", "--", s.weft, "lab"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	err := cmd.Run()
	s.t.Logf("%.1f s: weft lab %s", time.Since(start).Seconds(), strings.Join(args, " "))
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status {
		s.t.Fatalf("weft lab %s: %v; want exit status %d\n%s%s", strings.Join(args, " "), err, status, &out, &errs)
	}
	return out.String(), errs.String()
}

// labJSON is lab for a command whose answer is JSON.
func (s *site) labJSON(to any, args ...string) {
	s.t.Helper()
	out, _ := s.lab(0, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), to); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

// nothing fails if a machine has anything of a lab.
func (s *site) nothing(pid int) {
	s.t.Helper()
	s.in(pid, "sh", "-c", `test -z "$(ls /run/weft /run/netns 2>/dev/null | grep -v : | grep .)" && ! ip -o link | grep -q vxlan || { ls /run/weft /run/netns; ip -o link; exit 1; }`)
}
