package scp

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/sbi"
)

// strain is what is known of the load of producers besides what they register: what they
// say in their answers (TS 29.500, 6.3 and 6.4), and what is seen of them by the front, which
// passes requests on to them, and by the switches, which count their packets.
type strain struct {
	locate func(netip.Addr) flow.Location // where an end point is

	mu   sync.Mutex // guards the following
	said *table[saidKey, said]
	seen *table[netip.AddrPort, seen]
}

// saidKey is an instance, a service instance of it, or its sets.
type saidKey struct {
	instance, service string
	sets              bool
}

// said is the last reports of an instance: of all that it does, and of parts.
type said struct {
	notice
	parts []partNotice
}

// notice is the last reports of load and of overload.
type notice struct {
	load, reduction     int // percent
	relative            int // percent of the capacity that there is; 0: all
	loadAt, reductionAt time.Time
	loadEnd             int64
	reductionEnd        int64
}

type partNotice struct {
	notice
	part sbi.LoadPart
}

// seen is what was seen of an end point since it was last judged, and how it was.
type seen struct {
	began     int64
	answers   int
	congested int // of these, or late
	took      time.Duration
	rate      float64 // packets a second; 0 if it is not watched
	reduction int
	why       string
}

// Bounds of what is known, which the ports of the network share, and for how long it counts.
const (
	mostStrain  = 20_000
	mostParts   = 16                     // of one instance
	loadLife    = int64(2 * time.Minute) // of a load that is not renewed
	longestLess = time.Hour              // for which a producer may ask for less at once
	clockOff    = time.Minute            // how far ahead a producer's clock counts
	lateAnswer  = time.Second            // what takes less is the consumer's impatience
	fewAnswers  = 5                      // are not judged
	judgeRest   = int64(time.Second)     // between two judgements
	judgeLonger = int64(5 * time.Second) // if there are few answers, which are forgotten then
	moreRelief  = 30                     // percent, for each judgement that it is overloaded
	lessRelief  = 10                     // for each that it is not
	mostRelief  = 90                     // so that it is seen when it recovers
)

func newStrain(locate func(netip.Addr) flow.Location) *strain {
	return &strain{locate: locate, said: newTable[saidKey, said](mostStrain), seen: newTable[netip.AddrPort, seen](mostStrain)}
}

// relief is what follows from the strain of an end point.
type relief struct {
	load      int // percent; -1: what is registered counts
	relative  int // percent of the capacity; 0: all
	reduction int // percent of what is new that goes elsewhere
	asked     bool
	why       string
}

// of returns the relief of an end point of a service of an instance, whatever is asked of
// it.
func (s *strain) of(instance, service string, at netip.AddrPort, now int64) relief {
	return s.ofPart(instance, service, at, now, wanted{})
}

// ofPart is of for what a request is about. Of reductions the larger counts; of loads that of
// the service, then the instance, then its set, each of the part before that of all.
func (s *strain) ofPart(instance, service string, at netip.AddrPort, now int64, w wanted) (r relief) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.load = -1
	add := func(n *notice) {
		if now < n.loadEnd {
			r.load, r.relative = n.load, n.relative
		}
		if now < n.reductionEnd && n.reduction > r.reduction {
			r.reduction, r.asked = n.reduction, true
			r.why = fmt.Sprintf("it asks for that, for %v more", time.Duration(n.reductionEnd-now).Round(time.Second))
		}
	}
	for _, k := range []saidKey{{instance, "", true}, {instance, "", false}, {instance, service, false}} {
		x := s.said.get(k)
		if x == nil {
			continue
		}
		add(&x.notice)
		for i := range x.parts {
			if x.parts[i].part.Has(w.slices, w.dnn) {
				add(&x.parts[i].notice)
			}
		}
	}
	if x := s.seen.get(at); x != nil && x.reduction > r.reduction {
		r.reduction, r.asked, r.why = x.reduction, false, x.why
	}
	return r
}

// capacity returns what there is of a capacity.
func (r relief) capacity(all int) int {
	if r.relative == 0 {
		return all
	}
	return all * r.relative / 100
}

// relieve returns candidates with the loads that they have said, and draws which of them
// this request spares. It draws once for all: where all ask for a tenth less, a tenth of
// the requests is refused.
func (s *strain) relieve(list []candidate, now int64, w wanted) []candidate {
	list = slices.Clone(list)
	drawn := rand.IntN(100)
	for i := range list {
		x := &list[i]
		r := s.ofPart(x.id, x.service, x.at.Addr, now, w)
		if r.load >= 0 {
			x.load, x.weight = r.load, int(weight(r.capacity(x.capacity), r.load))
		}
		x.spared = drawn < r.reduction
		x.shed = x.spared && r.asked
	}
	return list
}

// observe notes the answer of an end point to a request.
func (s *strain) observe(at netip.AddrPort, congested bool, took time.Duration) {
	s.observeAll(at, seenAnswers{1, ones(congested), took})
}

// seenAnswers are some answers of an end point.
type seenAnswers struct {
	n, congested int
	took         time.Duration // in all
}

// observeAll notes answers of an end point.
func (s *strain) observeAll(at netip.AddrPort, a seenAnswers) {
	where := s.locate(at.Addr())
	s.mu.Lock()
	defer s.mu.Unlock()
	x, _ := s.seen.use(at, where)
	x.answers, x.congested, x.took = x.answers+a.n, x.congested+a.congested, x.took+a.took
}

// limits are those of a policy; 0 is none.
type limits struct {
	errors   int // percent
	response time.Duration
	rate     float64
}

// judge judges all end points by the limits of their types.
func (s *strain) judge(now int64, limitsOf func(netip.AddrPort) limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.all(func(at netip.AddrPort, x *seen) {
		if x.began == 0 {
			x.began = now
		}
		if rest := now - x.began; rest < judgeRest || x.answers < fewAnswers && rest < judgeLonger && x.rate == 0 {
			return
		}
		x.judge(limitsOf(at))
		x.began, x.answers, x.congested, x.took = now, 0, 0, 0
		if x.reduction == 0 && x.rate == 0 {
			s.seen.remove(at)
		}
	})
}

// judge sets the reduction by what was seen: it grows by steps while a limit is reached,
// and shrinks by smaller ones when all is clearly below, so that it does not swing.
func (x *seen) judge(l limits) {
	share, mean := 0, time.Duration(0)
	if x.answers >= fewAnswers {
		share, mean = 100*x.congested/x.answers, x.took/time.Duration(x.answers)
	}
	why := ""
	switch {
	case l.errors > 0 && share >= l.errors:
		why = fmt.Sprintf("%d of its last %d answers were 429, 503, redirections or too late", x.congested, x.answers)
	case l.response > 0 && mean >= l.response:
		why = fmt.Sprintf("its last %d answers took %v on average", x.answers, mean.Round(time.Millisecond))
	case l.rate > 0 && x.rate >= l.rate:
		why = fmt.Sprintf("its pairs have %.0f packets a second", x.rate)
	}
	switch {
	case why != "":
		x.reduction, x.why = min(x.reduction+moreRelief, mostRelief), why
	case 2*share < max(l.errors, 1) && (l.response == 0 || 10*mean < 8*l.response) && (l.rate == 0 || 10*x.rate < 9*l.rate):
		x.reduction = max(0, x.reduction-lessRelief)
	}
}

// setRates takes the packets a second of end points; those that are missing are watched no
// more.
func (s *strain) setRates(rates map[netip.AddrPort]float64) {
	where := map[netip.AddrPort]flow.Location{}
	for at := range rates {
		where[at] = s.locate(at.Addr())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.all(func(at netip.AddrPort, x *seen) {
		if _, is := rates[at]; !is {
			x.rate = 0
		}
	})
	for at, rate := range rates {
		x, _ := s.seen.use(at, where[at])
		x.rate = rate
	}
}

// relieved returns how many end points get fewer requests.
func (s *strain) relieved(now int64) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.all(func(_ netip.AddrPort, x *seen) { n += ones(x.reduction > 0) })
	s.said.all(func(_ saidKey, x *said) { n += ones(now < x.reductionEnd && x.reduction > 0) })
	return n
}

// of returns the notice of a part, made if there is none, in place of the oldest if there are
// too many.
func (x *said) of(part sbi.LoadPart) *notice {
	i := slices.IndexFunc(x.parts, func(p partNotice) bool { return p.part == part })
	switch {
	case i >= 0:
	case len(x.parts) < mostParts:
		i = len(x.parts)
		x.parts = append(x.parts, partNotice{part: part})
	default:
		i = 0
		for j := range x.parts {
			if o, p := &x.parts[i], &x.parts[j]; max(p.loadEnd, p.reductionEnd) < max(o.loadEnd, o.reductionEnd) {
				i = j
			}
		}
		x.parts[i] = partNotice{part: part}
	}
	return &x.parts[i].notice
}

// take takes a report of an instance, which is somewhere. It reports whether it is newer than
// the last.
func (s *strain) take(k saidKey, where flow.Location, r sbi.LoadReport, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, _ := s.said.use(k, where)
	x := &of.notice
	if r.Part != (sbi.LoadPart{}) {
		x = of.of(r.Part)
	}
	at := r.At
	if limit := time.Now().Add(clockOff); at.After(limit) {
		at = limit
	}
	switch {
	case r.Overload && at.After(x.reductionAt):
		x.reduction, x.reductionAt, x.reductionEnd = r.Percent, at, now+int64(min(r.Validity, longestLess))
	case !r.Overload && at.After(x.loadAt):
		x.load, x.relative, x.loadAt, x.loadEnd = r.Percent, r.Relative, at, now+loadLife
	default:
		return false
	}
	return true
}

// heed takes what a producer says of its load in an answer: of itself, and of a set that it
// is in, for itself only. The other members say so themselves.
func (s *strain) heed(count *counts, x *index, from candidate, h http.Header, now int64) {
	if h[sbi.LoadHeader] == nil && h[sbi.OverloadHeader] == nil {
		return
	}
	list, malformed := sbi.ParseLoad(h)
	where := s.locate(from.at.Addr.Addr())
	count.loadsMalformed.Add(float64(malformed))
	for _, r := range list {
		own := cmp.Or(r.Instance, from.id) == from.id && (r.Service == "" || r.Service == from.service)
		if r.Set != "" {
			own = own && slices.ContainsFunc(x.sets[r.Set], func(nf *producer) bool { return nf.id() == from.id })
		}
		if own && !r.Other && s.take(saidKey{from.id, r.Service, r.Set != ""}, where, r, now) {
			count.loads.Add(1)
		} else {
			count.loadsUnused.Add(1)
		}
	}
}

// judgeBy judges what is seen of producers by the policies of a proxy.
func (s *strain) judgeBy(p *proxy, now int64) {
	index := p.index.Load()
	types := map[sbi.NFType]limits{}
	s.judge(now, func(at netip.AddrPort) limits {
		list := index.doors[at]
		if len(list) == 0 {
			return limits{}
		}
		of := list[0].profile.NFType
		l, known := types[of]
		if !known {
			l = limitsOf(p, of)
			types[of] = l
		}
		return l
	})
}

// limitsOf returns the limits of a type's policy.
func limitsOf(p *proxy, of sbi.NFType) limits {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.policyOf(of)
	return limits{cmp.Or(int(m.GetErrors()), p.cfg.Load().Errors), time.Duration(m.GetResponseMs()) * time.Millisecond, float64(m.GetRate())}
}
