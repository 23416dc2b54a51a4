package bus_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/internal/testwait"
)

// foreign is the variable by which a copy of the test binary knows that it is
// to be a NATS server as somebody else would run it; it holds a member.
const foreign = "WEFT_BUS_TEST_NATS"

// member is a NATS server in a process of its own.
type member struct {
	Name    string
	Dir     string
	Port    int
	Route   int   // port at which the others of its cluster reach it; 0: alone
	Routes  []int // of all
	Payload int   // largest message; 0: as NATS has it
	Monitor int   // port of its monitoring; 0: none
	Lazy    bool  // it confirms writes before they are on disk

	cmd *exec.Cmd
}

// serve is the life of the process.
func serve(text string) error {
	var m member
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return err
	}
	o := &server.Options{
		ServerName: m.Name, Host: "127.0.0.1", Port: m.Port, JetStream: true, StoreDir: m.Dir,
		NoSigs: true, NoLog: true, MaxPayload: int32(m.Payload), SyncAlways: !m.Lazy,
	}
	if m.Monitor > 0 {
		o.HTTPHost, o.HTTPPort = "127.0.0.1", m.Monitor
	}
	if m.Route > 0 {
		o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: m.Route}
		for _, port := range m.Routes {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", port)})
		}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()
	return nil
}

// wipe removes what a server that is killed has kept.
func (m *member) wipe(t testing.TB) {
	t.Helper()
	if err := os.RemoveAll(m.Dir); err != nil {
		t.Fatal(err)
	}
}

func (m *member) url() string { return fmt.Sprint("nats://127.0.0.1:", m.Port) }

// start starts the process and waits until it takes connections.
func (m *member) start(t testing.TB) {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	m.cmd = exec.Command(os.Args[0])
	m.cmd.Env = append(os.Environ(), foreign+"="+string(text))
	m.cmd.Stderr = os.Stderr
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", m.Port)); err == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("server %s does not start", m.Name)
		}
	}
}

// kill kills the process, if it runs.
func (m *member) kill() {
	if m.cmd != nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		m.cmd = nil
	}
}

// cluster starts servers that are one cluster if they are several.
func cluster(t testing.TB, size int) (members []*member, urls string) {
	t.Helper()
	dir := t.TempDir()
	ports := ports(t, 2*size)
	var all []string
	for i := range size {
		m := &member{Name: fmt.Sprint("n", i), Dir: filepath.Join(dir, fmt.Sprint(i)), Port: ports[i]}
		if size > 1 {
			m.Route, m.Routes = ports[size+i], ports[size:]
		}
		m.start(t)
		t.Cleanup(m.kill)
		members, all = append(members, m), append(all, m.url())
	}
	return members, strings.Join(all, ",")
}

// ports returns ports that are free, and nobody else's while a server of a test is away.
func ports(t testing.TB, n int) (ports []int) {
	t.Helper()
	for range n {
		port, err := freeport.Port()
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
	}
	return ports
}
