package test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/test/testbed"
)

// The ends of the link between the two namespaces, which nobody else sees.
const (
	nearAddress = "10.213.0.1"
	farAddress  = "10.213.0.2"
)

// partitioned has the routing worker on another machine, which is a namespace
// at the other end of a link, with certificates, and cuts the link for three
// seconds: packets vanish, and nobody is told.
func (f *faults) partitioned(t *testing.T, transport string) {
	near, far := twoMachines(t)
	dir := openDir(t)
	d := f.prepare(t, "", "--certs", dir)
	d.namespace = near
	text := fourWorkers(transport, transport)
	for worker, more := range map[string]string{
		"southbound": "listen: " + nearAddress + ":0", "topology": "listen: " + nearAddress + ":0", "north": "listen: " + nearAddress + ":0",
		"routing": "machine: far, listen: " + farAddress + ":7000",
	} {
		text = strings.Replace(text, worker+": {", worker+": {"+more+", ", 1)
	}
	d.plan = d.write("plan.yaml", text)
	for _, args := range [][]string{
		{"certs", "init", "--dir", dir}, {"certs", "plan", d.plan, "--dir", dir}, {"certs", "issue", "bus", "--dir", dir, "--host", nearAddress},
	} {
		if out, err := exec.Command(d.weft, args...).CombinedOutput(); err != nil {
			t.Fatalf("weft %v: %v\n%s", args, err, out)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		err = errors.Join(err, os.Chown(file, userFree, userFree)) // whom controllers become
	}
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(nearAddress, "4222")
	server, token := startBus(t, near, t.TempDir(), address, dir)
	t.Cleanup(func() {
		for _, p := range d.started { // they need the bus to leave
			p.Stop()
		}
		server.Stop()
	})
	url := fmt.Sprintf("tls://%s@%s", token, address)
	d.plan = d.write("plan.yaml", text+fmt.Sprintf("bus: {url: %q}\n", url))
	d.supervise()
	command := within(far, d.weft, "worker", "--process", "routing", "--bus", url, "--certs", dir, "--listen", farAddress+":7000",
		"--log-level", "warn", "--set", fmt.Sprintf("southbound.listen=[%q]", "tcp:"+d.openflow))
	d.run("routing", command[0], command[1:]...)
	d.allUp()
	source := d.connect()
	w := d.watch()
	load := d.load(source)
	time.Sleep(500 * time.Millisecond)
	o := outage{process: "routing", from: time.Now(), pid: d.pids()["routing"]}
	shell(t, "ip", "netns", "exec", far, "nft", "add table inet cut; add chain inet cut in { type filter hook input priority 0; policy drop; }; add chain inet cut out { type filter hook output priority 0; policy drop; }")
	o.gone = time.Now()
	time.Sleep(3 * time.Second)
	o.to = time.Now()
	shell(t, "ip", "netns", "exec", far, "nft", "delete table inet cut")
	d.again(w, &o, 0)
	time.Sleep(500 * time.Millisecond)
	d.report(load.end(), "network parted for 3 s", o)
	if source.Err() != nil {
		t.Errorf("a switch has lost its connection: %v", source.Err())
	}
	w.truthful("north")
}

// twoMachines makes two namespaces with a link between them.
func twoMachines(t *testing.T) (near, far string) {
	t.Helper()
	name := fmt.Sprintf("wf%d", time.Now().UnixNano()%1e9)
	near, far = name+"n", name+"f"
	for i, ns := range []string{near, far} {
		shell(t, "ip", "netns", "add", ns)
		t.Cleanup(func() { shell(t, "ip", "netns", "delete", ns) })
		shell(t, "ip", "-n", ns, "link", "set", "lo", "up")
		if i == 1 {
			shell(t, "ip", "-n", near, "link", "add", "w0", "type", "veth", "peer", "name", "w0", "netns", far)
		}
	}
	for ns, address := range map[string]string{near: nearAddress, far: farAddress} {
		shell(t, "ip", "-n", ns, "addr", "add", address+"/30", "dev", "w0")
		shell(t, "ip", "-n", ns, "link", "set", "w0", "up")
	}
	return near, far
}

func shell(t *testing.T, command ...string) {
	t.Helper()
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
}

// inside calls a function on a thread in a namespace, that of the test if none
// is named: the sockets that it opens belong there.
func inside(namespace string, f func() error) error {
	if namespace == "" {
		return f()
	}
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		fd, err := unix.Open("/run/netns/"+namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
			unix.Close(fd)
		}
		if err != nil {
			result <- fmt.Errorf("namespace %s: %w", namespace, err)
			return
		}
		result <- f()
	}()
	return <-result
}

// dial dials an address of the controller's machine.
func (d *deployment) dial(ctx context.Context, address string) (conn net.Conn, err error) {
	err = inside(d.namespace, func() error {
		var dialer net.Dialer
		conn, err = dialer.DialContext(ctx, "tcp", address)
		return err
	})
	return conn, err
}

// source connects a simulated switch from the controller's machine.
func (d *deployment) source(ctx context.Context, c testbed.SourceConfig) (s *testbed.Source, err error) {
	err = inside(d.namespace, func() error {
		s, err = testbed.Connect(ctx, c)
		return err
	})
	return s, err
}
