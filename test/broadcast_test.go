package test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/packet"
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

// phase is what may become of broadcasts.
type phase int

const (
	resting  phase = iota // the tree is in force: each comes to every host once
	kept                  // it is in force, and a host may be away: once at most
	changing              // another is coming into force: twice at most
)

// check reports broadcasts of a range that came to a host more often, or less,
// than they may, or back to their sender. One that is under way while the tree
// changes may have gone on by the former and go on by the new: it comes to some
// hosts twice, and to none more often
// (docs/decisions/3-two-step-tree.md).
func (c *copies) check(t *testing.T, when, sender string, first, after uint32, p phase) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	lost, twice := 0, 0
	for host, seen := range c.seen {
		least, most := 0, 1
		switch {
		case host == sender:
			most = 0
		case p == resting:
			least = 1
		case p == changing:
			most = 2
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
			if host != sender && seen[n] == 2 {
				twice++
			}
		}
		if few > 0 || many > 0 {
			t.Errorf("%s: of %d broadcasts of %s, %d did not come to %s, %d came too often", when, after-first, sender, few, host, many)
		}
	}
	if lost > 0 || twice > 0 {
		t.Logf("%s: %d of %d copies lost, %d came twice", when, lost, int(after-first)*(len(c.seen)-1), twice)
	}
}

// arrived reports whether broadcasts have come to all hosts but their sender.
func (c *copies) arrived(sender string, first, after uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for host, seen := range c.seen {
		for n := first; n < after && host != sender; n++ {
			if seen[n] == 0 {
				return false
			}
		}
	}
	return true
}

// broadcaster sends marked broadcasts of one host, and counts their copies.
type broadcaster struct {
	*copies
	t    *testing.T
	name string
	wire *wire
	mac  flow.MAC
	ip   netip.Addr
	next uint32
}

func newBroadcaster(t *testing.T, l *lab.Lab, name string) *broadcaster {
	h := lookup(t, l, name)
	return &broadcaster{copies: countCopies(t, l), t: t, name: name, wire: attach(t, l, name), mac: flow.MAC(h.MAC), ip: h.IPv4.Addr()}
}

// sow sends so many broadcasts, ARP requests and datagrams in turn, and returns
// their numbers.
func (b *broadcaster) sow(n uint32, pause time.Duration) (first, after uint32) {
	b.t.Helper()
	first, b.next = b.next, b.next+n
	for i := first; i < b.next; i++ {
		b.wire.send(broadcastOf(b.mac, b.ip, i))
		time.Sleep(pause)
	}
	return first, b.next
}

// late is for how long copies are waited for that are not to come.
const late = 200 * time.Millisecond

// send sends so many and checks what becomes of them. Where the tree is in force,
// it begins when the switches' datapaths have followed.
func (b *broadcaster) send(when string, n uint32, pause time.Duration, p phase) {
	b.t.Helper()
	if p == resting {
		eventually(b.t, when+": broadcasts come to all hosts", func() bool {
			first, after := b.sow(2, 20*time.Millisecond)
			return b.arrived(b.name, first, after)
		})
	}
	first, after := b.sow(n, pause)
	for end := time.Now().Add(patience); p == resting && !b.arrived(b.name, first, after) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(late)
	b.check(b.t, when, b.name, first, after, p)
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
// every host once, and while the tree changes twice at most.
func TestBroadcasts(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	l := up(t, "demo", c)
	settled(c, l)
	b := newBroadcaster(t, l, "h1")
	const pause = 10 * time.Millisecond
	b.send("at first", 100, pause, resting)
	for _, link := range [][2]string{{"s1", "s2"}, {"s1", "s6"}, {"s3", "s8"}} {
		if err := l.LinkDown(context.Background(), link[0], link[1]); err != nil {
			t.Fatal(err)
		}
		b.send(fmt.Sprintf("just after %s-%s was cut", link[0], link[1]), 50, pause, changing)
		if err := l.LinkUp(context.Background(), link[0], link[1]); err != nil {
			t.Fatal(err)
		}
		b.send(fmt.Sprintf("just after %s-%s was mended", link[0], link[1]), 50, pause, changing)
	}
	settled(c, l)
	b.send("when mended", 50, pause, resting)

	var first, after uint32
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		time.Sleep(100 * time.Millisecond)
		first, after = b.sow(250, pause)
	}()
	c.stop()
	time.Sleep(500 * time.Millisecond)
	c = start(t, options{store: c.store, address: c.address})
	settled(c, l)
	<-ended
	datagrams := func() bool { // they need no controller
		b.mu.Lock()
		defer b.mu.Unlock()
		for host, seen := range b.seen {
			for i := first | 1; i < after && host != "h1"; i += 2 {
				if seen[i] == 0 {
					return false
				}
			}
		}
		return true
	}
	for end := time.Now().Add(patience); !datagrams() && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(late)
	b.check(t, "while the controller restarted", "h1", first, after, kept)
	b.mu.Lock()
	for host, n := range b.seen {
		for i := first | 1; i < after && host != "h1"; i += 2 {
			if n[i] != 1 {
				t.Errorf("while the controller restarted: datagram %d came to %s %d times, want once", i-first, host, n[i])
				break
			}
		}
	}
	b.mu.Unlock()
	b.send("after the restart", 50, pause, resting)
	explain(c)
}
