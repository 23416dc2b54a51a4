package traffic

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// Flow is packets from one host to another.
type Flow struct {
	From, To string
	Options  Options
}

// FlowResult is what came of a flow, or why nothing did.
type FlowResult struct {
	Result
	Err error
}

// TrafficAll is Traffic of several flows at once.
func (l Meter) TrafficAll(ctx context.Context, flows []Flow) []FlowResult {
	all := make([]FlowResult, len(flows))
	var wg sync.WaitGroup
	for i, f := range flows {
		wg.Go(func() { all[i].Result, all[i].Err = l.Traffic(ctx, f.From, f.To, f.Options) })
	}
	wg.Wait()
	return all
}

// trafficEnd is one end of a flow, on the machine of its host.
type trafficEnd struct {
	Flow    int // by which the other end is known
	Sink    bool
	Host    string
	To      netip.Addr // of a source
	Options Options
}

// trafficWord is what is said between a machine that has ends of flows and who asked for them.
type trafficWord struct {
	Say   string // of those below
	Flow  int
	Clock int64 // of wordClock: nanoseconds
	Error string
	Half  trafficHalf
}

const (
	wordClock   = "clock"   // asks for the time, and is the answer
	wordOpen    = "open"    // the end is open, or Error says why not
	wordGo      = "go"      // sources may send
	wordGreeted = "greeted" // the sink has got a first packet
	wordDone    = "done"    // the source has sent, or the sink has received, what Half says
)

// trafficHalf is what one end has found out.
type trafficHalf struct {
	Packets, Twice int
	Used           time.Duration
	At             []int64 // by packet: nanoseconds of its machine's clock, 0 if not known
}

// trafficLink speaks with the other side; several goroutines may say something.
type trafficLink struct {
	mu  sync.Mutex // guards enc
	enc *gob.Encoder
	dec *gob.Decoder
}

const mostWords = 256 << 20 // octets of what one side says

func newTrafficLink(r io.Reader, w io.Writer) *trafficLink {
	return &trafficLink{enc: gob.NewEncoder(w), dec: gob.NewDecoder(io.LimitReader(r, mostWords))}
}

func (k *trafficLink) say(w trafficWord) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.enc.Encode(w)
}

// TrafficEnds serves the ends of flows at hosts of this machine for another, which speaks by r
// and w, until that has gone.
func (l Meter) TrafficEnds(ctx context.Context, r io.Reader, w io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	k := newTrafficLink(r, w)
	var ends []trafficEnd
	if err := k.dec.Decode(&ends); err != nil {
		cancel()
		return fmt.Errorf("read the flows: %w", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	sources, sinks := map[int]*trafficSource{}, map[int]*trafficSink{}
	greeted := map[int]*trafficSink{} // of sources: by what they see that a first packet has arrived
	for _, e := range ends {
		h, err := l.state.FindHost(e.Host)
		switch {
		case err != nil:
		case e.Sink:
			var s *trafficSink
			if s, err = openSink(machine.HostNetns(l.state.Name, e.Host), h.CPUs, e.Options); err == nil {
				sinks[e.Flow] = s
				wg.Go(s.run)
				defer s.ending.Store(true)
				wg.Go(func() { s.tellGreeted(ctx, k, e.Flow) })
			}
		default:
			var s *trafficSource
			if s, err = openSource(machine.HostNetns(l.state.Name, e.Host), h, e.To, e.Options); err == nil {
				sources[e.Flow], greeted[e.Flow] = s, &trafficSink{}
			}
		}
		if err := k.say(trafficWord{Say: wordOpen, Flow: e.Flow, Error: textOf(err)}); err != nil {
			return err
		}
	}
	for {
		var word trafficWord
		if err := k.dec.Decode(&word); err != nil {
			return nil //nolint:nilerr // whoever asked has gone, or has all
		}
		switch word.Say {
		case wordClock:
			if err := k.say(trafficWord{Say: wordClock, Clock: time.Now().UnixNano()}); err != nil {
				return err
			}
		case wordGreeted:
			if s := greeted[word.Flow]; s != nil {
				s.greeted.Store(1)
			}
		case wordGo:
			for flow, s := range sources {
				wg.Go(func() {
					defer s.close()
					err := s.run(ctx, greeted[flow])
					_ = k.say(trafficWord{Say: wordDone, Flow: flow, Error: textOf(err), Half: trafficHalf{Packets: s.sent, Used: s.used, At: s.at[:s.sent]}})
				})
			}
		case wordDone:
			s := sinks[word.Flow]
			if s == nil {
				continue
			}
			wg.Go(func() {
				s.settle(word.Half.Packets)
				s.close()
				half := trafficHalf{Packets: s.received, Twice: s.twice, Used: s.used, At: s.at[:min(len(s.at), word.Half.Packets)]}
				_ = k.say(trafficWord{Say: wordDone, Flow: word.Flow, Error: textOf(s.err), Half: half})
			})
		}
	}
}

// tellGreeted says when the first packet has come.
func (s *trafficSink) tellGreeted(ctx context.Context, k *trafficLink, flow int) {
	for ctx.Err() == nil && !s.ending.Load() {
		if s.greeted.Load() > 0 {
			_ = k.say(trafficWord{Say: wordGreeted, Flow: flow})
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Machine is a machine that has ends of flows: what TrafficEnds there reads and writes.
type Machine struct {
	Name string
	io.Reader
	io.Writer

	link  *trafficLink
	ahead int64         // nanoseconds, of its clock
	doubt time.Duration // about that
}

// Between is TrafficAll for hosts on several machines; at names that of a host. Clocks are
// compared over the connections to the machines.
func Between(ctx context.Context, flows []Flow, host func(string) (topology.Host, error), at func(string) *Machine) []FlowResult {
	all := make([]FlowResult, len(flows))
	b := between{flows: flows, all: all, at: at, ends: map[*Machine][]trafficEnd{}}
	for i, f := range flows {
		all[i].From, all[i].To = f.From, f.To
		if all[i].Err = b.add(i, f, host); all[i].Err == nil {
			b.left++
		}
	}
	if b.left == 0 {
		return all
	}
	if err := b.run(ctx); err != nil {
		for i := range all {
			if !b.done[i] && all[i].Err == nil {
				all[i].Err = err
			}
		}
	}
	return all
}

type between struct {
	flows []Flow
	all   []FlowResult
	at    func(string) *Machine
	ends  map[*Machine][]trafficEnd
	left  int // flows that are not done
	done  map[int]bool
	sent  map[int]trafficHalf
}

// add checks a flow, and notes its ends.
func (b *between) add(i int, f Flow, host func(string) (topology.Host, error)) error {
	o := f.Options
	if err := o.check(); err != nil {
		return err
	}
	a, err := host(f.From)
	if err != nil {
		return err
	}
	z, err := host(f.To)
	if err != nil {
		return err
	}
	for _, h := range []*topology.Host{&a, &z} {
		if !h.HasIPv4() {
			return fmt.Errorf("host %s has no IPv4 address", h.Name)
		}
	}
	from, to := b.at(f.From), b.at(f.To)
	b.ends[from] = append(b.ends[from], trafficEnd{Flow: i, Host: f.From, To: z.IPv4.Addr(), Options: o})
	b.ends[to] = append(b.ends[to], trafficEnd{Flow: i, Sink: true, Host: f.To, Options: o})
	return nil
}

// clockRounds is how often a machine is asked for its time: the quickest answer counts.
const clockRounds = 8

// run opens the ends, lets the sources send, and takes in what came of that.
func (b *between) run(ctx context.Context) error {
	b.done, b.sent = map[int]bool{}, map[int]trafficHalf{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	words := make(chan saidBy)
	var gone atomic.Pointer[error]
	for m, ends := range b.ends {
		m.link = newTrafficLink(m.Reader, m.Writer)
		if err := m.link.enc.Encode(ends); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		go func() {
			for {
				var w trafficWord
				if err := m.link.dec.Decode(&w); err != nil {
					err = fmt.Errorf("%s has gone: %w", m.Name, err)
					gone.CompareAndSwap(nil, &err)
					cancel()
					return
				}
				select {
				case words <- saidBy{m, w}:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	next := func() (saidBy, error) {
		select {
		case w := <-words:
			return w, nil
		case <-ctx.Done():
			if err := gone.Load(); err != nil {
				return saidBy{}, *err
			}
			return saidBy{}, ctx.Err()
		}
	}
	for range 2 * b.left {
		w, err := next()
		if err != nil {
			return err
		}
		if w.Error != "" {
			b.fail(w.Flow, errors.New(w.Error))
		}
	}
	for m := range b.ends {
		if err := b.compare(m, next); err != nil {
			return err
		}
	}
	for m := range b.ends {
		if err := m.link.say(trafficWord{Say: wordGo}); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	for b.left > 0 {
		w, err := next()
		if err == nil {
			err = b.take(w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type saidBy struct {
	by *Machine
	trafficWord
}

func (b *between) fail(flow int, err error) {
	if !b.done[flow] {
		b.done[flow], b.all[flow].Err = true, err
		b.left--
	}
}

// compare finds out how far a machine's clock is ahead.
func (b *between) compare(m *Machine, next func() (saidBy, error)) error {
	for range clockRounds {
		asked := time.Now()
		if err := m.link.say(trafficWord{Say: wordClock}); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		w, err := next()
		if err != nil {
			return err
		}
		if w.Say != wordClock {
			return fmt.Errorf("%s says %q to a question for its time: is weft there as new as here?", m.Name, w.Say)
		}
		half := time.Since(asked) / 2
		if m.doubt == 0 || half < m.doubt {
			m.doubt, m.ahead = half, w.Clock-asked.Add(half).UnixNano()
		}
	}
	return nil
}

// take does what a word of a machine asks for.
func (b *between) take(w saidBy) error {
	if w.Flow < 0 || w.Flow >= len(b.flows) || b.done[w.Flow] {
		return nil
	}
	f := b.flows[w.Flow]
	source, sink := b.at(f.From), b.at(f.To)
	_, sent := b.sent[w.Flow]
	switch {
	case w.Error != "":
		b.fail(w.Flow, errors.New(w.Error))
	case w.Say == wordGreeted:
		return source.link.say(trafficWord{Say: wordGreeted, Flow: w.Flow})
	case w.Say == wordDone && !sent:
		b.sent[w.Flow] = w.Half
		return sink.link.say(trafficWord{Say: wordDone, Flow: w.Flow, Half: trafficHalf{Packets: w.Half.Packets}})
	case w.Say == wordDone:
		b.finish(w.Flow, w.Half, source, sink)
	}
	return nil
}

// finish sums a flow up.
func (b *between) finish(flow int, in trafficHalf, source, sink *Machine) {
	r, out := &b.all[flow].Result, b.sent[flow]
	if len(in.At) != len(out.At) {
		b.fail(flow, fmt.Errorf("%s and %s do not agree about %d packets", source.Name, sink.Name, len(out.At)))
		return
	}
	if source != sink {
		for i := range in.At {
			if in.At[i] != 0 {
				in.At[i] -= sink.ahead - source.ahead
			}
		}
		r.ClockError = Figure((source.doubt + sink.doubt).Seconds() * 1e3)
	}
	r.Sent, r.Received, r.Twice = out.Packets, in.Packets, in.Twice
	r.sum(out.At, in.At)
	r.SourceCPU, r.SinkCPU = perPacket(out.Used, r.Sent), perPacket(in.Used, r.Received)
	b.done[flow] = true
	b.left--
}
