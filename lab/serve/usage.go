package serve

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab"
)

const (
	leastSample = 250 * time.Millisecond // over which processor time is looked at
	mostSample  = 15 * time.Second       // older samples are not compared with
	maxSampled  = 64                     // labs of which a sample is remembered
)

// sample is what a lab's namespaces used at a time.
type sample struct {
	at  time.Time
	use map[string]lab.Usage
}

// usages are the last samples, by the labs' names.
type usages struct {
	mu   sync.Mutex // guards last
	last map[string]sample
}

// before returns the last sample of a lab, if it can be compared with now.
func (u *usages) before(name string, now time.Time) (sample, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, ok := u.last[name]
	age := now.Sub(s.at)
	return s, ok && age >= leastSample && age <= mostSample
}

func (u *usages) keep(name string, s sample) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for other, o := range u.last {
		if s.at.Sub(o.at) > mostSample {
			delete(u.last, other)
		}
	}
	if u.last == nil {
		u.last = map[string]sample{}
	}
	if len(u.last) < maxSampled {
		u.last[name] = s
	}
}

// GetLabUsage says what the nodes of a lab use of the machine (api.LabServer).
func (s *server) GetLabUsage(ctx context.Context, req *api.GetLabUsageRequest) (*api.LabUsage, error) {
	l, err := open(req.GetLab())
	if err != nil {
		return nil, err
	}
	release, err := s.measures.take()
	if err != nil {
		return nil, err
	}
	defer release()
	take := func() (sample, error) {
		use, err := l.Usage()
		return sample{time.Now(), use}, err
	}
	was, ok := s.usages.before(l.Name(), time.Now())
	if !ok {
		if was, err = take(); err != nil {
			return nil, err
		}
		select {
		case <-time.After(leastSample):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	is, err := take()
	if err != nil {
		return nil, err
	}
	s.usages.keep(l.Name(), is)
	resp := &api.LabUsage{Processors: uint32(runtime.NumCPU()), Memory: memory(), Seconds: is.at.Sub(was.at).Seconds()}
	of := func(node, ns string) *api.LabNodeUsage {
		u := is.use[ns]
		return &api.LabNodeUsage{
			Node: node, Processes: uint32(u.Processes), Memory: u.Memory, CpuSeconds: u.CPU.Seconds(),
			CpuPercent: max(0, 100*(u.CPU-was.use[ns].CPU).Seconds()/resp.Seconds), // less where processes have ended
		}
	}
	for _, node := range nodesOf(l.Topology()) {
		place, err := l.PlaceOf(node)
		if err != nil {
			return nil, err
		}
		if place.Own {
			resp.Nodes = append(resp.Nodes, of(node, place.Namespace))
		}
	}
	resp.Shared = of("", l.SwitchNetns())
	return resp, nil
}

// memory returns the machine's memory in octets, 0 if it is not told.
func memory() uint64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		if f := bytes.Fields(line); len(f) >= 2 && string(f[0]) == "MemTotal:" {
			kB, _ := strconv.ParseUint(string(f[1]), 10, 54)
			return kB << 10
		}
	}
	return 0
}
