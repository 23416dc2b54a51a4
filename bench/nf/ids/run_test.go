package ids

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
	"golang.org/x/sys/unix"
)

// between is a function between the veth pairs a0-a1 and b0-b1 in a network namespace of
// its own, and packet sockets at the far ends. It needs root, and fails without.
type between struct {
	t      testing.TB
	a, b   int // sockets
	cancel context.CancelFunc
	done   chan error
	report Report
}

func stand(t testing.TB, cfg Config) *between {
	t.Helper()
	w := &between{t: t, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	ready, standing := make(chan error), make(chan struct{})
	cfg.Ready = func() { close(standing) }
	go func() {
		runtime.LockOSThread() // for good: the namespace goes with the thread
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil { // in this namespace alone: the kernel sends nothing by itself
			err = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
		}
		for _, line := range []string{
			"link add a0 mtu 1500 type veth peer name a1 mtu 1500", "link add b0 mtu 1500 type veth peer name b1 mtu 1500",
			"link set a0 up", "link set a1 up", "link set b0 up", "link set b1 up",
		} {
			if err == nil {
				var out []byte
				out, err = exec.Command("ip", strings.Fields(line)...).CombinedOutput()
				if err != nil {
					err = fmt.Errorf("ip %s: %w: %s", line, err, out)
				}
			}
		}
		for name, fd := range map[string]*int{"a0": &w.a, "b1": &w.b} {
			if err == nil {
				*fd, err = farEnd(name)
			}
		}
		ready <- err
		if err == nil {
			w.report, err = Run(ctx, cfg)
		}
		w.done <- err
	}()
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	<-standing
	return w
}

func farEnd(name string) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fd, err
	}
	of, err := openPort(name) // for its index
	if err != nil {
		return fd, err
	}
	addr, err := unix.Getsockname(of.fd)
	of.close()
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1)
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
	}
	if err == nil {
		err = unix.Bind(fd, addr)
	}
	return fd, err
}

func (w *between) send(fd int, frame []byte) {
	w.t.Helper()
	if _, err := unix.Write(fd, frame); err != nil {
		w.t.Fatal(err)
	}
}

// receive returns the next frame, with its tag; nil if none comes.
func (w *between) receive(fd int, wait time.Duration) []byte {
	n, err := 0, error(unix.EINTR)
	for end := time.Now().Add(wait); err == unix.EINTR; { // by a signal of Go's scheduler
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(time.Until(end), 0)/time.Millisecond))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if n == 0 {
		return nil
	}
	b, oob := make([]byte, 3000), make([]byte, 100)
	n, oobn, _, _, err := unix.Recvmsg(fd, b, oob, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	b = b[:n]
	if m, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil && len(m) > 0 && binary.NativeEndian.Uint32(m[0].Data)&unix.TP_STATUS_VLAN_VALID != 0 {
		tci, tpid := binary.NativeEndian.Uint16(m[0].Data[16:]), binary.NativeEndian.Uint16(m[0].Data[18:])
		b = append(append(append([]byte{}, b[:12]...), byte(tpid>>8), byte(tpid), byte(tci>>8), byte(tci)), b[12:]...)
	}
	return b
}

// end ends the function and returns its report.
func (w *between) end() Report {
	w.t.Helper()
	w.cancel()
	if err := <-w.done; err != nil {
		w.t.Fatal(err)
	}
	unix.Close(w.a)
	unix.Close(w.b)
	return w.report
}

func exampleRules(t testing.TB) []Rule {
	t.Helper()
	rules, err := ParseRules("example", Example(200))
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// Frames of all kinds go through unchanged, in both directions, and give alerts.
func TestBetween(t *testing.T) {
	rules := exampleRules(t)
	file := filepath.Join(t.TempDir(), "alerts")
	w := stand(t, Config{A: "a1", B: "b0", Rules: rules, Alerts: file, Sync: true})
	attack := udp(20000, 5000, "x"+strings.ToUpper(rules[0].Text())+" "+rules[5].Text())
	cases := [][]byte{
		attack, udp(20000, 5000, "nothing"), tagged(attack, 0x8100), tagged(tagged(attack, 0x8100), 0x88a8), tcp6(2, rules[0].Text()),
		with(attack, 20, 0, 9, 64, protoUDP, 0, 0), with(attack, 16, 0xff, 0xff), bytes.Repeat([]byte{0xff}, 20), make([]byte, 14), udp(1, 2, strings.Repeat("q", 1472)),
	}
	for _, frame := range cases {
		for _, way := range [][2]int{{w.a, w.b}, {w.b, w.a}} {
			w.send(way[0], frame)
			if got := w.receive(way[1], testwait.Limit); !bytes.Equal(got, frame) {
				t.Errorf("sent     %x\nreceived %x", frame, got)
			}
		}
	}
	for n := range 500 { // in their order, in bursts
		w.send(w.a, udp(20000, uint16(n), "x"))
	}
	for n := range 500 {
		if got := w.receive(w.b, testwait.Limit); len(got) < 42 || binary.BigEndian.Uint16(got[36:]) != uint16(n) {
			t.Fatalf("packet %d is %x", n, got)
		}
	}
	r := w.end()
	if r.Packets < 520 || r.Dropped != 0 || r.Refused != 0 || r.Alerts < 16 || r.Service <= 0 || r.CPU <= 0 || r.Alert <= 0 || r.Rules != 200 {
		t.Errorf("%+v", r)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") != int(r.Alerts) || !strings.Contains(string(text), " content content-0 10.0.0.1 20000 > 10.0.0.2 5000 ") {
		t.Errorf("%d alerts: %s, %v", r.Alerts, text, err)
	}
}

func TestRunRefuses(t *testing.T) {
	rules := exampleRules(t)
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{A: "lo", B: "none"}, "no rules: give at least one"},
		{Config{A: "lo", B: "lo", Rules: rules}, "interface lo twice"},
		{Config{A: "none0", B: "none1", Rules: rules}, "interface none0: "},
		{Config{A: "lo", B: "none1", Rules: rules, Alerts: "/none/alerts"}, "alerts: /none/alerts: no such file"},
	} {
		if _, err := Run(t.Context(), c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// BenchmarkBetween is how many packets of 1,000 bytes pass 200 rules; what sends and
// receives them has the other processors.
func BenchmarkBetween(b *testing.B) {
	w := stand(b, Config{A: "a1", B: "b0", Rules: exampleRules(b)})
	frame := udp(20000, 5000, strings.Repeat(".", 958))
	drained := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(drained)
		for {
			select {
			case <-stop:
				return
			default:
				w.receive(w.b, 10*time.Millisecond)
			}
		}
	}()
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		w.send(w.a, frame)
	}
	close(stop)
	<-drained
	r := w.end()
	b.ReportMetric(r.Service*1e6, "ns/service")
	b.ReportMetric(1/r.CPU*1e3, "packets/cpu-s")
	b.ReportMetric(float64(r.Dropped)/float64(b.N), "dropped/op")
}
