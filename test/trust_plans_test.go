package test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
)

// trustPlans has a worker be stopped while a plan moves the stage that its packets
// go to, and go on when the others have carried the plan out: nothing of the old
// plan stays, and no packet is lost. And a plan that cannot be carried out as a
// port is in use ends weft up.
func trustPlans(t *testing.T, f *faults) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, f.weft, "up", "split", "--quiet", "--data-dir", filepath.Join(openDir(t), "data"), "--listen", l.Addr().String(), "--http", freeAddress(t)).CombinedOutput()
	if err == nil || !strings.Contains(string(out), fmt.Sprintf("listen tcp %s: bind: address already in use; is another controller running?", l.Addr())) {
		t.Errorf("weft up split with a port in use: %v\n%s", err, out)
	}

	d := f.deploy(t, fourWorkers("grpc", "grpc"))
	source := d.connect()
	load := d.load(source)
	topology := d.pids()["topology"]
	if err := syscall.Kill(topology, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	moved := strings.NewReplacer("topology: {services: [discovery, hosts]}", "topology: {services: [discovery, hosts, stats]}", "flowrules, stats, gateway", "flowrules, gateway").Replace(fourWorkers("grpc", "grpc"))
	applied := make(chan error, 1)
	go func() {
		_, err := d.command(context.Background(), "apply", d.write("moved.yaml", moved))
		applied <- err
	}()
	time.Sleep(300 * time.Millisecond) // it goes on by itself before it is taken for dead
	if err := syscall.Kill(topology, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-applied; err != nil {
		t.Error(err)
	}
	d.allUp()
	load.end()
}
