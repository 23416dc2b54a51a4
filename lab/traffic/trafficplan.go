package traffic

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weft-sdn/weft/lab/topology"
)

// Arrivals is how packets of Traffic follow each other.
type Arrivals string

// The arrivals.
const (
	PoissonArrivals  Arrivals = "poisson"
	ConstantArrivals Arrivals = "constant"
)

// Options is UDP over IPv4 from one host to another. What is zero is as
// DefaultTraffic has it, but for Seed and Count.
type Options struct {
	Rate     float64 // packets a second
	Arrivals Arrivals
	Size     int // of a packet with its IP header, in bytes
	Flows    int // source ports from 10000 on: each has one packet of as many, at a random place
	Seed     uint64
	Duration time.Duration
	Port     uint16 // of the sink: a host takes in as many at once as have ports of their own; 0: 5000
	Count    int    // packets; 0: what Rate and Duration give
	// Words are put into payloads, after each other, each drawn at random: into
	// each packet a number that is geometric from 0 with the mean MeanWords.
	Words     []string
	MeanWords float64
}

// DefaultOptions returns the traffic of the paper on network functions for a second.
func DefaultOptions() Options {
	return Options{Rate: 970, Arrivals: PoissonArrivals, Size: 1000, Flows: 1000, Seed: 1, Duration: time.Second}
}

// The packets a second that there may be.
const LeastRate, MostRate = 0.1, 1_000_000

const (
	ipHeader, udpHeader = 20, 8
	// trafficHeader is a packet's magic number and its own, before its words.
	trafficHeader = 16
	leastTraffic  = ipHeader + udpHeader + trafficHeader
	mostPackets   = 10_000_000
	mostFlows     = 50_000
)

// check fills in what was left out and says what is wrong.
func (o *Options) check() error {
	d := DefaultOptions()
	o.Rate, o.Arrivals, o.Size = cmp.Or(o.Rate, d.Rate), cmp.Or(o.Arrivals, d.Arrivals), cmp.Or(o.Size, d.Size)
	o.Flows, o.Duration, o.Port = cmp.Or(o.Flows, d.Flows), cmp.Or(o.Duration, d.Duration), cmp.Or(o.Port, trafficPort)
	if o.Count == 0 && o.Rate > 0 {
		o.Count = int(math.Min(mostPackets+1, o.Rate*o.Duration.Seconds()+0.5))
	}
	longest := 0
	for _, w := range o.Words {
		longest = max(longest, len(w))
	}
	switch {
	case !(o.Rate >= LeastRate && o.Rate <= MostRate):
		return fmt.Errorf("rate %v: want %v to %d packets a second", o.Rate, LeastRate, int(MostRate))
	case o.Arrivals != PoissonArrivals && o.Arrivals != ConstantArrivals:
		return fmt.Errorf("arrivals %q: want %s or %s", o.Arrivals, PoissonArrivals, ConstantArrivals)
	case o.Size < leastTraffic || o.Size > topology.MaxMTU:
		return fmt.Errorf("size %d: want %d to %d bytes", o.Size, leastTraffic, topology.MaxMTU)
	case o.Flows < 1 || o.Flows > mostFlows:
		return fmt.Errorf("flows %d: want 1 to %d", o.Flows, mostFlows)
	case o.Count < 1 || o.Count > mostPackets:
		return fmt.Errorf("%d packets: want 1 to %d: change rate or time", o.Count, mostPackets)
	case !(o.MeanWords >= 0 && o.MeanWords <= 1000) || o.MeanWords > 0 && len(o.Words) == 0:
		return fmt.Errorf("%v words in a packet, of %d words: want a mean of 0 to 1000, and words for it", o.MeanWords, len(o.Words))
	case longest > o.Size-leastTraffic:
		return fmt.Errorf("words of up to %d bytes: packets have room for %d: make packets larger", longest, o.Size-leastTraffic)
	}
	return nil
}

// schedule is what a source sends: when each packet is due after the first, and
// what is in it. A seed determines it.
type schedule struct {
	o        Options
	gaps     *rand.Rand
	contents *rand.Rand
	flows    []int // an order of them
	sent     int
	due      time.Duration // of the packet after those so far
	exact    float64       // the same in seconds
}

func newSchedule(o Options) *schedule {
	s := &schedule{o: o, gaps: rand.New(rand.NewPCG(o.Seed, 1)), contents: rand.New(rand.NewPCG(o.Seed, 2)), flows: make([]int, o.Flows)}
	for i := range s.flows {
		s.flows[i] = i
	}
	return s
}

// next goes on to the next packet.
func (s *schedule) next() {
	gap := 1.0
	if s.o.Arrivals == PoissonArrivals {
		gap = s.gaps.ExpFloat64()
	}
	s.exact += gap / s.o.Rate
	s.due = time.Duration(s.exact * float64(time.Second))
}

// flow returns the flow of the next packet.
func (s *schedule) flow() int {
	at := s.sent % len(s.flows)
	if s.sent++; at == 0 {
		s.contents.Shuffle(len(s.flows), func(i, j int) { s.flows[i], s.flows[j] = s.flows[j], s.flows[i] })
	}
	return s.flows[at]
}

// fill writes the words of the next packet into its payload, over those of the
// last one.
func (s *schedule) fill(payload []byte) {
	if s.o.MeanWords == 0 {
		return
	}
	for i := range payload {
		payload[i] = '.'
	}
	for more := s.o.MeanWords / (1 + s.o.MeanWords); s.contents.Float64() < more; {
		n := copy(payload, s.o.Words[s.contents.IntN(len(s.o.Words))])
		if payload = payload[min(n+1, len(payload)):]; len(payload) == 0 {
			return
		}
	}
}
