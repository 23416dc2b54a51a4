package node

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weft-sdn/weft/internal/testwait"
)

// frr is a daemon of FRR with costs of interfaces.
type frr struct {
	show, cost, format string
	mu                 sync.Mutex // guards costs
	costs              map[string]string
}

func (f *frr) serve(t *testing.T, socket string) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.talk(c)
		}
	}()
}

func (f *frr) talk(c net.Conn) {
	defer c.Close()
	iface := ""
	for r := bufio.NewReader(c); ; {
		line, err := r.ReadString(0)
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\x00")
		said, status := "", byte(0)
		f.mu.Lock()
		switch name, ok := strings.CutPrefix(line, "interface "); {
		case ok:
			iface = name
		case line == f.show:
			var all []string
			for name, cost := range f.costs {
				all = append(all, fmt.Sprintf("%q:{\"cost\":%s}", name, cost))
			}
			said = fmt.Sprintf(f.format, strings.Join(all, ","))
		case strings.HasPrefix(line, f.cost):
			f.costs[iface] = strings.TrimSpace(strings.TrimPrefix(line, f.cost))
		case line == "no "+f.cost:
			f.costs[iface] = "10"
		case line != "enable" && line != "configure terminal" && line != "exit":
			said, status = "% Unknown command", 2
		}
		f.mu.Unlock()
		_, _ = c.Write(append([]byte(said), 0, 0, 0, status))
	}
}

func (f *frr) is(iface, cost string) func() bool {
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.costs[iface] == cost
	}
}

// TestSilentLinksAreTheLastResort: a link whose session goes down gets the highest
// cost, and the one it had when the session is up again or is not wanted any more;
// one without a session, whose session never was up, or a customer's gets none. What
// an earlier process has left is taken back.
func TestSilentLinksAreTheLastResort(t *testing.T) {
	dir := t.TempDir()
	four := &frr{show: ospf.show, cost: ospf.cost, format: `{"interfaces":{%s}}`, costs: map[string]string{"i1": "10", "i2": "7", "i3": "10", "i4": "65535"}}
	six := &frr{show: ospf6.show, cost: ospf6.cost, format: `{%s}`, costs: map[string]string{"i2": "9"}}
	four.serve(t, filepath.Join(dir, ospf.socket))
	n := pe1("/br.mgmt")
	n.Routing = dir
	n.Ports = append(n.Ports, Port{Port: 3, Interface: "e3", Internal: 103, InternalInterface: "i3"}, Port{Port: 4, Interface: "e4", Internal: 104, InternalInterface: "e104", Routed: "i4"})
	n.Loopback6 = n.Protected[1].Addr().Next()
	d := &database{changed: func() {}, ifaces: map[string]iface{}, names: map[string]string{}}
	k := &keeping{Node: &n, log: slog.New(slog.DiscardHandler), db: d, kick: make(chan struct{}, 1)}
	say := func(name, enable, state string) {
		d.mu.Lock()
		d.ifaces[name], d.names[name] = iface{name: name, bfd: map[string]string{"enable": enable}, bfdStatus: map[string]string{"state": state}}, name
		d.mu.Unlock()
		kick(k.kick)
	}
	for _, name := range []string{"e1", "e2", "e4"} {
		say(name, "true", "up")
	}
	say("e3", "true", "down")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { k.keepCosts(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	testwait.Until(t, "the cost of an earlier process taken back", four.is("i4", "10"))
	say("e1", "true", "down")
	say("e2", "true", "down")
	testwait.Until(t, "the last resort of OSPF", four.is("i2", "65535"))
	six.serve(t, filepath.Join(dir, ospf6.socket))
	testwait.Until(t, "the last resort of OSPFv3, once it is there", six.is("i2", "65535"))
	say("e2", "true", "up")
	testwait.Until(t, "the cost as before", four.is("i2", "7"))
	testwait.Until(t, "the cost of OSPFv3 as before", six.is("i2", "9"))
	say("e4", "true", "init")
	testwait.Until(t, "the last resort of OSPF", four.is("i4", "65535"))
	say("e4", "", "")
	testwait.Until(t, "the cost once no session is wanted", four.is("i4", "10"))
	for _, iface := range []string{"i1", "i3"} {
		if !four.is(iface, "10")() {
			t.Errorf("the cost of %s was changed", iface)
		}
	}
}

// TestLastResortStays: a link whose session is down stays the last resort when the process
// starts, and until it knows the sessions, and is none when its session is up.
func TestLastResortStays(t *testing.T) {
	dir := t.TempDir()
	four := &frr{show: ospf.show, cost: ospf.cost, format: `{"interfaces":{%s}}`, costs: map[string]string{"i3": "65535", "i2": "65535"}}
	n := pe1("/br.mgmt")
	n.Routing = dir
	n.Ports = append(n.Ports, Port{Port: 3, Interface: "e3", Internal: 103, InternalInterface: "i3"})
	k := &keeping{Node: &n, log: slog.New(slog.DiscardHandler), db: &database{}, kick: make(chan struct{}, 1)}
	four.serve(t, filepath.Join(dir, ospf.socket))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { k.keepCosts(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	say := func(e3, e2 string) {
		k.db.mu.Lock()
		k.db.ifaces, k.db.names = map[string]iface{}, map[string]string{}
		for name, state := range map[string]string{"e3": e3, "e2": e2} {
			k.db.ifaces[name], k.db.names[name] = iface{name: name, bfd: map[string]string{"enable": "true"}, bfdStatus: map[string]string{"state": state}}, name
		}
		k.db.mu.Unlock()
		kick(k.kick)
	}
	say("down", "up")
	testwait.Until(t, "the cost of the link whose session is up", four.is("i2", "10"))
	if !four.is("i3", "65535")() {
		t.Error("the link whose session is down is not the last resort any more")
	}
	say("up", "up")
	testwait.Until(t, "the cost once the session is up", four.is("i3", "10"))
}
