package port_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/grpc"
	"github.com/weft-sdn/weft/transport/inproc"
	"github.com/weft-sdn/weft/transport/port"
	"github.com/weft-sdn/weft/transport/rest"
	"github.com/weft-sdn/weft/transport/shm"
	"github.com/weft-sdn/weft/transport/transporttest"
	"github.com/weft-sdn/weft/transport/ws"
)

// serveVariable makes the test binary a process that echoes at a port.
const serveVariable = "WEFT_PORT_TEST_SERVE"

func TestMain(m *testing.M) {
	if address := os.Getenv(serveVariable); address != "" {
		listen := func(address string) (transport.Listener, error) {
			return port.Listen(address, port.Config{Handler: echo{}})
		}
		if memory, ok := strings.CutPrefix(address, "shm+"); ok {
			address, listen = memory, func(address string) (transport.Listener, error) { return shm.New(nil).Listen(address, echo{}) }
		}
		p, err := listen(address)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(p.Address())
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type echo struct{}

func (echo) Call(_ context.Context, _ string, req []byte) ([]byte, error) { return req, nil }

// process starts this test as a process of its own that echoes at a port, or at
// shm+ADDRESS over shared memory.
func process(t testing.TB, address string) (at string, pid int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveVariable+"="+address)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // it ends
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), cmd.Process.Pid
}

// BenchmarkProcesses measures calls from one process to another, over each
// transport; inproc for comparison.
func BenchmarkProcesses(b *testing.B) {
	tcp, _ := process(b, "127.0.0.1:0")
	unix, _ := process(b, "unix:"+b.TempDir()+"/s")
	memory, _ := process(b, "shm+unix:"+b.TempDir()+"/s")
	b.Run("shm", func(b *testing.B) { transporttest.BenchConn(b, shm.New(nil), memory) })
	for _, c := range []struct {
		name string
		t    transport.Transport
	}{{"grpc", grpc.New(nil)}, {"ws", ws.New(nil)}, {"rest", rest.New(nil)}} {
		b.Run(c.name, func(b *testing.B) { transporttest.BenchConn(b, c.t, tcp) })
		b.Run(c.name+"-unix", func(b *testing.B) { transporttest.BenchConn(b, c.t, unix) })
	}
	b.Run("inproc", func(b *testing.B) {
		transporttest.Bench(b, func(testing.TB) (transport.Transport, string) { return inproc.New(), "a" })
	})
}
