package traffic

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// PingOptions says how to ping; the zero value is three packets, 200 ms apart, over IPv4.
type PingOptions struct {
	IPv6     bool
	Count    int           // packets; 0: 3; negative: until ctx ends
	Interval time.Duration // between packets; 0: 200 ms; at least 1 ms
	Timeout  time.Duration // to wait for an answer after the last packet; 0: 1 s
	Size     int           // payload bytes; 0: 56
	Parallel int           // pairs at a time in PingAll; 0: 16
	// Reply, if not nil, is called for each answer, in order of arrival for each pair.
	Reply func(from, to string, seq int, rtt time.Duration)
}

// PingResult is what came of pinging one host from another.
type PingResult struct {
	From     string `json:"from"`
	To       string `json:"to"`
	IPv6     bool   `json:"ipv6"`
	Sent     int    `json:"sent"`
	Received int    `json:"received"`
	// RTTs in milliseconds; 0 if nothing was received.
	Min float64 `json:"min_ms"`
	Avg float64 `json:"avg_ms"`
	Max float64 `json:"max_ms"`
	// Outage is the longest run of lost packets times their interval, in
	// milliseconds: how long the path was cut, to the interval.
	Outage float64 `json:"outage_ms"`
	Error  string  `json:"error,omitempty"` // the sender's last error, such as no route
}

// Lost is the number of packets without an answer.
func (r PingResult) Lost() int { return r.Sent - r.Received }

// Meter sends between the hosts of a lab, and measures what arrives.
type Meter struct{ state *layout.Lab }

// MeterOf returns the meter of a lab.
func MeterOf(s *layout.Lab) Meter { return Meter{s} }

// AllPairs is Topology.AllPairs of the lab.
func (l Meter) AllPairs(ipv6 bool) []topology.Pair { return l.state.Topology.AllPairs(ipv6) }

// target returns the address to ping of a host, or of one of the topology's Names; zero if it
// has none of the family.
func (l Meter) target(name string, ipv6 bool) (netip.Addr, error) {
	for _, n := range l.state.Topology.Names {
		if n.Name != name {
			continue
		}
		for _, a := range n.Addresses {
			if a.Is6() == ipv6 {
				return a, nil
			}
		}
		return netip.Addr{}, nil
	}
	h, err := l.state.FindHost(name)
	if ipv6 {
		return h.IPv6.Addr(), err
	}
	return h.IPv4.Addr(), err
}

// Ping pings one host from another, or one that the topology's Names have. Lost packets
// are no error.
func (l Meter) Ping(ctx context.Context, from, to string, opt PingOptions) (PingResult, error) {
	r := PingResult{From: from, To: to, IPv6: opt.IPv6}
	src, err := l.state.FindHost(from)
	if err != nil {
		return r, err
	}
	da, err := l.target(to, opt.IPv6)
	if err != nil {
		return r, err
	}
	if opt.Count == 0 {
		opt.Count = 3
	}
	if opt.Interval == 0 {
		opt.Interval = 200 * time.Millisecond
	}
	opt.Interval = max(opt.Interval, time.Millisecond)
	if opt.Timeout == 0 {
		opt.Timeout = time.Second
	}
	if opt.Size == 0 {
		opt.Size = 56
	}
	sa := src.IPv4.Addr()
	if opt.IPv6 {
		sa = src.IPv6.Addr()
	}
	for _, a := range []struct {
		host string
		addr netip.Addr
	}{{from, sa}, {to, da}} {
		if !a.addr.IsValid() || a.addr.IsUnspecified() {
			return r, fmt.Errorf("host %s has no address of that family", a.host)
		}
	}
	var e *echoer
	err = machine.InNetns(machine.HostNetns(l.state.Name, from), func() error {
		e, err = newEchoer(sa, da, opt.Size)
		return err
	})
	if err != nil {
		return r, fmt.Errorf("ping from %s: %w", from, err)
	}
	p := pinger{result: r, opt: opt, echo: e}
	p.run(ctx)
	return p.result, nil
}

// PingAll pings every pair, several at a time, and returns a result for each,
// in the same order.
func (l Meter) PingAll(ctx context.Context, pairs []topology.Pair, opt PingOptions) ([]PingResult, error) {
	if opt.Parallel <= 0 {
		opt.Parallel = 16
	}
	results := make([]PingResult, len(pairs))
	var g errgroup.Group
	g.SetLimit(opt.Parallel)
	for i, p := range pairs {
		g.Go(func() (err error) {
			results[i], err = l.Ping(ctx, p.From, p.To, opt)
			return err
		})
	}
	return results, errors.Join(g.Wait(), ctx.Err())
}

// pinger is one run of Ping.
type pinger struct {
	opt  PingOptions
	echo *echoer

	mu     sync.Mutex // guards what follows
	result PingResult
	sentAt []time.Time // by sequence number from 0
	got    []bool
	sum    float64
	all    chan struct{} // closed when the last packet is answered
	done   bool          // sending is over
}

func (p *pinger) run(ctx context.Context) {
	p.all = make(chan struct{})
	received := make(chan struct{})
	go func() {
		defer close(received)
		p.echo.receive(p.reply)
	}()
	tick := time.NewTicker(p.opt.Interval)
	for n := 0; ctx.Err() == nil && n != p.opt.Count; n++ {
		if n > 0 {
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
			if ctx.Err() != nil {
				break
			}
		}
		p.send(n)
	}
	tick.Stop()
	p.mu.Lock()
	p.done = true
	if p.result.Received < p.result.Sent {
		p.mu.Unlock()
		select {
		case <-p.all:
		case <-time.After(p.opt.Timeout):
		}
		p.mu.Lock()
	}
	p.mu.Unlock()
	p.echo.close()
	<-received
	p.finish()
}

func (p *pinger) send(seq int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sentAt = append(p.sentAt, time.Now())
	p.got = append(p.got, false)
	p.result.Sent++
	if err := p.echo.send(uint16(seq)); err != nil {
		p.result.Error = err.Error()
	}
}

// reply takes in the answer with the low 16 bits of its sequence number, which
// arrived at the given time by the wall clock.
func (p *pinger) reply(low uint16, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.sentAt) - 1
	seq := last - int(uint16(last)-low)
	if seq < 0 || p.got[seq] {
		return
	}
	p.got[seq] = true
	rtt := at.Round(0).Sub(p.sentAt[seq].Round(0))
	ms := max(float64(rtt)/1e6, 0)
	if p.result.Received == 0 || ms < p.result.Min {
		p.result.Min = ms
	}
	p.result.Max = max(p.result.Max, ms)
	p.sum += ms
	p.result.Received++
	if p.done && p.result.Received == p.result.Sent {
		close(p.all)
	}
	if p.opt.Reply != nil {
		p.opt.Reply(p.result.From, p.result.To, seq, rtt)
	}
}

func (p *pinger) finish() {
	if p.result.Received > 0 {
		p.result.Avg = p.sum / float64(p.result.Received)
	}
	run, longest := 0, 0
	for _, got := range p.got {
		run++
		if got {
			run = 0
		}
		longest = max(longest, run)
	}
	p.result.Outage = float64(longest) * float64(p.opt.Interval) / 1e6
	for _, v := range []*float64{&p.result.Min, &p.result.Avg, &p.result.Max} {
		*v = math.Round(*v*1000) / 1000
	}
}

// AnyLost reports whether some packet of some pair was lost.
func AnyLost(results []PingResult) bool {
	return slices.ContainsFunc(results, func(r PingResult) bool { return r.Lost() > 0 })
}
