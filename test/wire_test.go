package test

import (
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
)

// wire is a packet socket on the interface of a host: it sends any frame, and
// sees every frame that comes in.
type wire struct {
	t       *testing.T
	fd      int
	closing sync.Once
}

// attach opens a packet socket in a host until the test ends.
func attach(t *testing.T, l *lab.Lab, host string) *wire {
	t.Helper()
	w := &wire{t: t}
	err := inHost(l, host, func() error {
		i, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		all := uint16(unix.ETH_P_ALL)
		return errors.Join(
			unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20),
			unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 8<<20),
			unix.SetsockoptTimeval(w.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20_000}),
			unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: all<<8 | all>>8, Ifindex: i.Index}))
	})
	if err != nil {
		t.Fatalf("packet socket in %s: %v", host, err)
	}
	t.Cleanup(w.close)
	return w
}

// close closes the socket; again does nothing.
func (w *wire) close() { w.closing.Do(func() { unix.Close(w.fd) }) }

// inHost runs f on a thread in the namespace of a host.
func inHost(l *lab.Lab, host string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		ns, err := netns.GetFromPath(filepath.Join("/run/netns", l.HostNetns(host)))
		if err == nil {
			defer ns.Close()
			err = netns.Set(ns)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// send sends a frame; any goroutine may. It waits while the kernel has no
// buffer for it.
func (w *wire) send(frame []byte) {
	w.t.Helper()
	_, err := unix.Write(w.fd, frame)
	for end := time.Now().Add(testwait.Limit); errors.Is(err, unix.ENOBUFS) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
		_, err = unix.Write(w.fd, frame)
	}
	if err != nil {
		w.t.Errorf("send: %v", err)
	}
}

// listen hands every frame that comes in to f, on one goroutine, until the
// function that it returns is called.
func (w *wire) listen(f func(frame []byte)) (stop func()) {
	return w.hear(func(frame []byte, _ int) { f(frame) })
}

// hear is listen that also tells by which interface a frame has come in.
func (w *wire) hear(f func(frame []byte, iface int)) (stop func()) {
	ended := make(chan struct{})
	var once sync.Once
	var running sync.WaitGroup
	running.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := unix.Recvfrom(w.fd, buf, 0)
			if err == nil {
				if ll, ok := from.(*unix.SockaddrLinklayer); ok && ll.Pkttype != unix.PACKET_OUTGOING {
					f(buf[:n], ll.Ifindex)
				}
				continue // until nothing waits
			}
			select {
			case <-ended:
				return
			default:
			}
			if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
				time.Sleep(10 * time.Millisecond) // the interface is down for a while
			}
		}
	})
	stop = func() {
		once.Do(func() { close(ended) })
		running.Wait()
	}
	w.t.Cleanup(stop)
	return stop
}

// mac returns the address of a host of the lab.
func mac(t *testing.T, l *lab.Lab, host string) flow.MAC {
	return flow.MAC(lookup(t, l, host).MAC)
}

// lookup returns a host of the lab.
func lookup(t *testing.T, l *lab.Lab, host string) topology.Host {
	t.Helper()
	h, err := l.Host(host)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// dpid returns the identity of a switch as the services' messages have it.
func dpid(t *testing.T, l *lab.Lab, name string) string {
	t.Helper()
	d, err := l.SwitchDPID(name)
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// metric returns the sum of a figure over those of its label sets that have
// all the given labels, alternating names and values.
func (c *controller) metric(name string, labels ...string) float64 {
	c.t.Helper()
	sum, found := 0.0, false
	for _, f := range c.gather() {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			has := map[string]string{}
			for _, l := range m.Label {
				has[l.GetName()] = l.GetValue()
			}
			fits := true
			for i := 0; i < len(labels); i += 2 {
				fits = fits && has[labels[i]] == labels[i+1]
			}
			if fits {
				found = true
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	if !found {
		c.t.Fatalf("no figure %s %q", name, labels)
	}
	return sum
}
