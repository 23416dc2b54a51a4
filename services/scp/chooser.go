package scp

import (
	"cmp"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/sbi"
)

// candidate is an end point of a producer that may serve a request.
type candidate struct {
	id      string // of its instance
	service string // of its service
	at      sbi.EndPoint
	tier    uint32
	weight  int
	load    int // percent

	capacity int
	spared   bool // this request goes elsewhere, if it can
	shed     bool // it is spared because it asks for that
}

// wanted is what a request is about, as far as reports may be of it.
type wanted struct {
	slices []sbi.Snssai
	dnn    string
}

// consumer is the sender of requests, as far as choosing depends on it.
type consumer struct {
	name string // its instance, or its address
	at   flow.Location
}

// chooser chooses a candidate for each request that the front passes on, by the policy
// of the producers' type.
type chooser struct {
	mu         sync.Mutex // guards the following
	work       map[netip.AddrPort]*work
	affinities *table[affinityKey, affinity]
}

// work is the load of an end point by what the front sends it.
type work struct {
	running int
	took    time.Duration // for an answer, a moving mean
	current int           // of the smooth weighted round robin
	resting int64         // until then, others are chosen before it
}

// affinity is the producer of a type that a consumer uses.
type affinity struct {
	id    string
	last  int64 // when it was used
	bound bool  // by a binding indication
}

type affinityKey struct {
	consumer string
	of       sbi.NFType
}

// Bounds of choosing.
const (
	mostAffinities = 20_000
	mostWork       = 20_000 // end points whose work is known
	mostTries      = 3      // candidates for one request
	affinityIdle   = 5 * time.Minute
	restTime       = int64(3 * time.Second)
	twoChoices     = "two-choices"
	byLocality     = "locality"
)

func newChooser() *chooser {
	return &chooser{work: map[netip.AddrPort]*work{}, affinities: newTable[affinityKey, affinity](mostAffinities)}
}

// choices are the algorithms. Each returns the index of the candidate that it chooses
// for a consumer.
var choices = map[string]func(c *chooser, of string, list []candidate) int{
	"weighted": (*chooser).weighted, "least": (*chooser).least, "hash": (*chooser).hashed, twoChoices: (*chooser).fasterOfTwo,
	byLocality: (*chooser).weighted, // those of other localities are in a later tier
}

// order returns the candidates for a request, the one to be tried first at the front.
func (c *chooser) order(list []candidate, policy *api.ScpPolicy, who consumer, now int64) []candidate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if list = slices.Clone(list); len(list) == 0 {
		return nil
	}
	rests := func(x candidate) int {
		if w := c.work[x.at.Addr]; w != nil && w.resting > now {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(rests(a)-rests(b), ones(a.spared)-ones(b.spared), cmp.Compare(a.tier, b.tier))
	})
	best := 1
	for best < len(list) && rests(list[best]) == rests(list[0]) && list[best].spared == list[0].spared && list[best].tier == list[0].tier {
		best++
	}
	first := -1
	if b := c.affinities.get(affinityKey{who.name, sbi.NFType(policy.GetType())}); policy.GetPer() == "pair" && b != nil {
		idle := cmp.Or(time.Duration(policy.GetIdleTimeout())*time.Second, affinityIdle)
		if policy.GetAgain() == "bound" || b.bound || now-b.last < int64(idle) {
			first = slices.IndexFunc(list, func(x candidate) bool { return x.id == b.id && rests(x) == 0 })
		}
	}
	if first < 0 {
		choose := choices[policy.GetAlgorithm()]
		if choose == nil {
			choose = (*chooser).weighted
		}
		first = choose(c, who.name, list[:best])
	}
	x := list[first]
	list = slices.Insert(slices.Delete(list, first, first+1), 0, x)
	return list[:min(len(list), mostTries)]
}

func ones(is bool) int {
	if is {
		return 1
	}
	return 0
}

// at returns the work of an end point. It is called with mu held.
func (c *chooser) at(a netip.AddrPort) *work {
	w := c.work[a]
	if w == nil {
		if len(c.work) >= mostWork {
			for old, w := range c.work {
				if w.running == 0 {
					delete(c.work, old)
				}
			}
		}
		w = &work{}
		c.work[a] = w
	}
	return w
}

// begin counts a request to an end point. The caller calls ended when the request has
// been answered or has failed, with the time that this took.
func (c *chooser) begin(a netip.AddrPort) (ended func(took time.Duration)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.at(a)
	w.running++
	return func(took time.Duration) {
		c.mu.Lock()
		defer c.mu.Unlock()
		w.running--
		if w.took += (took - w.took) / 8; w.took == 0 {
			w.took = took
		}
	}
}

// rest makes an end point that could not be reached the last choice for restTime.
func (c *chooser) rest(a netip.AddrPort, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at(a).resting = now + restTime
}

// bind records the producer of a type that a consumer uses. indicated is whether the
// answer had a binding indication.
func (c *chooser) bind(who consumer, of sbi.NFType, id string, indicated bool, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, _ := c.affinities.use(affinityKey{who.name, of}, who.at)
	b.id, b.last, b.bound = id, now, indicated || b.bound && b.id == id
}

// weighted chooses in turn, in proportion to the weights.
func (c *chooser) weighted(_ string, list []candidate) int {
	best, sum := 0, 0
	for i, x := range list {
		w := c.at(x.at.Addr)
		w.current += x.weight
		if sum += x.weight; w.current > c.at(list[best].at.Addr).current {
			best = i
		}
	}
	c.at(list[best].at.Addr).current -= sum
	return best
}

// least chooses the end point with the fewest requests for its weight.
func (c *chooser) least(_ string, list []candidate) int {
	best := 0
	for i, x := range list {
		if (c.at(x.at.Addr).running+1)*list[best].weight < (c.at(list[best].at.Addr).running+1)*x.weight {
			best = i
		}
	}
	return best
}

// hashed chooses by the consumer's name (weighted rendezvous hashing).
func (c *chooser) hashed(of string, list []candidate) int {
	best, top := 0, math.Inf(-1)
	for i, x := range list {
		h := fnv.New64a()
		h.Write([]byte(of + "\x00" + x.at.Addr.String()))
		u := (float64(h.Sum64()*0x9e3779b97f4a7c15>>11) + 0.5) / (1 << 53)
		if s := float64(x.weight) / -math.Log(u); s > top {
			best, top = i, s
		}
	}
	return best
}

// fasterOfTwo draws two end points at random and chooses the one whose requests under
// way, times its mean answer time, are fewer for its weight.
func (c *chooser) fasterOfTwo(_ string, list []candidate) int {
	a := rand.IntN(len(list))
	if len(list) == 1 {
		return a
	}
	b := (a + 1 + rand.IntN(len(list)-1)) % len(list)
	cost := func(i int) float64 {
		w := c.at(list[i].at.Addr)
		return float64(w.took) * float64(w.running+1) / float64(list[i].weight)
	}
	if cost(b) < cost(a) {
		return b
	}
	return a
}
