package test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"weft/flow"
	"weft/lab"
	"weft/packet"
)

// copies counts, at every host of a lab, how often each marked broadcast
// comes in.
type copies struct {
	mu   sync.Mutex // guards the counts in seen
	seen map[string]map[uint32]int
}

// markOf returns the number of a marked broadcast: it is in the target address
// of an ARP request, or in the payload of a datagram.
func markOf(frame []byte) (uint32, bool) {
	if a, ok := packet.ParseARP(frame); ok && a.Op() == packet.ARPRequest {
		if ip := a.TargetIP().As4(); ip[0] == 203 {
			ip[0] = 0
			return binary.BigEndian.Uint32(ip[:]), true
		}
		return 0, false
	}
	if ip, ok := packet.ParseIPv4(frame); ok && ip.DSCP() == 42 && len(ip.Payload()) >= 12 {
		return binary.BigEndian.Uint32(ip.Payload()[8:]), true
	}
	return 0, false
}

func countCopies(t *testing.T, l *lab.Lab) *copies {
	c := &copies{seen: map[string]map[uint32]int{}}
	for _, h := range l.Topology().Hosts {
		seen := map[uint32]int{}
		c.seen[h.Name] = seen
		attach(t, l, h.Name).listen(func(frame []byte) {
			if n, ok := markOf(frame); ok {
				c.mu.Lock()
				seen[n]++
				c.mu.Unlock()
			}
		})
	}
	return c
}

// check reports broadcasts of a range that came to a host more than once or,
// if all are wanted, not at all, or back to their sender.
func (c *copies) check(t *testing.T, when, sender string, first, after uint32, all bool) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	lost := 0
	for host, seen := range c.seen {
		least, most := 0, 1
		if host == sender {
			most = 0
		} else if all {
			least = 1
		}
		few, many := 0, 0
		for n := first; n < after; n++ {
			if seen[n] < least {
				few++
			}
			if seen[n] > most {
				many++
			}
			if host != sender && seen[n] == 0 {
				lost++
			}
		}
		if few > 0 || many > 0 {
			t.Errorf("%s: of %d broadcasts of %s, %d did not come to %s, %d came too often", when, after-first, sender, few, host, many)
		}
	}
	if lost > 0 {
		t.Logf("%s: %d of %d copies lost", when, lost, int(after-first)*(len(c.seen)-1))
	}
}

// broadcast sends marked broadcasts from first up to, not including, after:
// ARP requests and datagrams in turn.
func (w *wire) broadcast(src flow.MAC, ip netip.Addr, first, after uint32, pause time.Duration) {
	w.t.Helper()
	for n := first; n < after; n++ {
		w.send(broadcastOf(src, ip, n))
		time.Sleep(pause)
	}
	time.Sleep(200 * time.Millisecond)
}

// broadcastOf returns the marked broadcast of a number.
func broadcastOf(src flow.MAC, ip netip.Addr, n uint32) []byte {
	mark := binary.BigEndian.AppendUint32(nil, n)
	if n%2 == 0 {
		target := netip.AddrFrom4([4]byte{203, mark[1], mark[2], mark[3]})
		return packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: src, SenderIP: ip, TargetIP: target})
	}
	return packet.AppendUDP(nil, packet.Ether{Dst: flow.Broadcast, Src: src},
		packet.IP{Src: ip, Dst: netip.MustParseAddr("255.255.255.255"), DSCP: 42}, 4000, 4000, mark)
}

// TestBroadcasts sends broadcasts through a network with loops, whole, while
// links are cut and mended, and while the controller restarts: they come to
// every host once, and never twice.
func TestBroadcasts(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	l := up(t, "demo", c)
	settled(c, l)
	seen := countCopies(t, l)
	h := lookup(t, l, "h1")
	w := attach(t, l, "h1")
	next := uint32(0)
	send := func(when string, n uint32, all bool) {
		t.Helper()
		w.broadcast(flow.MAC(h.MAC), h.IPv4.Addr(), next, next+n, 10*time.Millisecond)
		seen.check(t, when, "h1", next, next+n, all)
		next += n
	}
	send("at first", 100, true)
	for _, link := range [][2]string{{"s1", "s2"}, {"s1", "s6"}, {"s3", "s8"}} {
		if err := l.LinkDown(context.Background(), link[0], link[1]); err != nil {
			t.Fatal(err)
		}
		send(fmt.Sprintf("just after %s-%s was cut", link[0], link[1]), 50, false)
		if err := l.LinkUp(context.Background(), link[0], link[1]); err != nil {
			t.Fatal(err)
		}
		send(fmt.Sprintf("just after %s-%s was mended", link[0], link[1]), 50, false)
	}
	settled(c, l)
	send("when mended", 50, true)

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		time.Sleep(100 * time.Millisecond)
		w.broadcast(flow.MAC(h.MAC), h.IPv4.Addr(), next, next+250, 10*time.Millisecond)
	}()
	c.stop()
	time.Sleep(500 * time.Millisecond)
	c = start(t, options{store: c.store, address: c.address})
	settled(c, l)
	<-ended
	seen.check(t, "while the controller restarted", "h1", next, next+250, false)
	seen.mu.Lock()
	for host, n := range seen.seen {
		for i := next | 1; i < next+250 && host != "h1"; i += 2 { // datagrams need no controller
			if n[i] != 1 {
				t.Errorf("while the controller restarted: datagram %d came to %s %d times, want once", i-next, host, n[i])
				break
			}
		}
	}
	seen.mu.Unlock()
	next += 250
	send("after the restart", 50, true)
	explain(c)
}
