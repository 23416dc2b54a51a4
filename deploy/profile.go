package deploy

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/internal/quantile"
	"github.com/weft-sdn/weft/transport"
)

// profileMethod asks a process for its profile.
const profileMethod = "deploy.Profile"

// Bounds of the length of a profile, and of the extra time for its answer.
const (
	profileLeast = 100 * time.Millisecond
	profileMost  = 15 * time.Second
	profileSlack = 5 * time.Second
	// profileTries is how often a process is asked if its connection ends
	// before the answer: a peer may hang up on a busy process.
	profileTries = 3
)

// TakeProfile profiles all processes at once and returns the results. A process
// that fails reports why.
func (n *Node) TakeProfile(ctx context.Context, r *api.TakeProfileRequest) (*api.TakeProfileResponse, error) {
	span := time.Duration(r.Milliseconds) * time.Millisecond
	if span < profileLeast || span > profileMost {
		return nil, api.Errorf(codes.InvalidArgument, "milliseconds %d: want %d to %d", r.Milliseconds, profileLeast.Milliseconds(), profileMost.Milliseconds())
	}
	request, err := proto.Marshal(r)
	if err != nil {
		return nil, api.Errorf(codes.Internal, "encode the request for other processes: %w", err)
	}
	peers := n.members.others()
	ctx, cancel := context.WithTimeout(ctx, profileTries*span+profileSlack)
	defer cancel()
	resp := &api.TakeProfileResponse{}
	var mu sync.Mutex // guards resp
	add := func(p *api.ProcessProfile) {
		mu.Lock()
		defer mu.Unlock()
		resp.Processes = append(resp.Processes, p)
	}
	var looking sync.WaitGroup
	looking.Go(func() { add(n.profile(ctx, r)) })
	for process, p := range peers {
		looking.Go(func() {
			found := &api.ProcessProfile{Process: process}
			answer, err := profileOf(ctx, p, request)
			for try := 1; err != nil && ctx.Err() == nil && try < profileTries; try++ {
				time.Sleep(profileLeast) // the first request must end there before the next
				answer, err = profileOf(ctx, p, request)
			}
			switch {
			case err != nil:
				found.Error = "it does not answer: " + err.Error()
			case len(answer) == 0 || answer[0] != members.AnswerOK:
				found.Error = "it cannot look at itself; it may be of another version"
			default:
				if err := proto.Unmarshal(answer[1:], found); err != nil {
					found = &api.ProcessProfile{Process: process, Error: "its answer cannot be read: " + err.Error()}
				}
			}
			add(found)
		})
	}
	looking.Wait()
	if ctx.Err() != nil {
		return nil, local.ErrorOf(ctx.Err())
	}
	slices.SortFunc(resp.Processes, func(a, b *api.ProcessProfile) int { return cmp.Compare(a.Process, b.Process) })
	return resp, nil
}

// profileOf asks a peer for its profile, over a separate connection, because
// connections to a busy peer may be hung up.
func profileOf(ctx context.Context, p *members.Peer, request []byte) ([]byte, error) {
	l := &members.Link{Transport: p.TransportOf(profileMethod), Ready: make(chan struct{})}
	p.Dial(l)
	if l.Err != nil {
		return nil, l.Err
	}
	defer l.Conn.Close()
	return l.Conn.Call(ctx, profileMethod, request)
}

// profiled answers another process's request for a profile.
func (n *Node) profiled(ctx context.Context, request []byte) ([]byte, error) {
	r := &api.TakeProfileRequest{}
	if err := proto.Unmarshal(request, r); err != nil {
		return nil, transport.Errorf(transport.Code(codes.InvalidArgument), "decode the request for a profile: %v", err)
	}
	r.Milliseconds = min(max(r.Milliseconds, uint32(profileLeast.Milliseconds())), uint32(profileMost.Milliseconds()))
	return proto.MarshalOptions{}.MarshalAppend([]byte{members.AnswerOK}, n.profile(ctx, r))
}

// profile profiles this process.
func (n *Node) profile(ctx context.Context, r *api.TakeProfileRequest) *api.ProcessProfile {
	p := &api.ProcessProfile{Process: n.config.Process, Machine: n.members.links.Machine, Processors: uint32(runtime.GOMAXPROCS(0))}
	for _, s := range n.worker.Running().Services {
		p.Services = append(p.Services, s.Spec.Name)
	}
	var cpu, heap bytes.Buffer
	if err := pprof.StartCPUProfile(&cpu); err != nil {
		p.Error = "its time is being looked at by somebody else already (weft up --cpu-profile, or another weft profile): " + err.Error()
		return p
	}
	began, used := time.Now(), cputime.Used()
	before := n.worker.Traffic(n.specs())
	p.Delays = n.crossingDelays(ctx)
	_ = backoff.Sleep(ctx, time.Duration(r.Milliseconds)*time.Millisecond-time.Since(began))
	pprof.StopCPUProfile()
	p.Seconds, p.CpuSeconds = time.Since(began).Seconds(), (cputime.Used() - used).Seconds()
	p.Cpu = cpu.Bytes()
	p.Traffic = n.worker.Traffic(n.specs()).Since(before)
	if r.WithoutMemory {
		return p
	}
	runtime.GC() // the heap profile is that of the last collection
	p.Resident = resident()
	if err := pprof.Lookup("heap").WriteTo(&heap, 0); err != nil {
		p.Error = "its memory cannot be looked at: " + err.Error()
	}
	p.Heap = heap.Bytes()
	return p
}

// resident returns the resident set of this process in bytes; 0 if the system
// does not report it.
func resident() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

// crossings is the number of requests in one measurement of a peer's delay.
const crossings = 31

// crossingDelays measures the delay to every other live process, over each of
// its transports, and returns the medians.
func (n *Node) crossingDelays(ctx context.Context) []*api.CrossingDelay {
	peers := n.members.others()
	ctx, cancel := context.WithTimeout(ctx, profileLeast/2+time.Duration(len(peers))*10*time.Millisecond)
	defer cancel()
	var list []*api.CrossingDelay
	for _, process := range slices.Sorted(maps.Keys(peers)) {
		p := peers[process]
		e := p.Entry.Load()
		for _, name := range slices.Sorted(maps.Keys(n.config.Transports)) {
			if e.Addresses[name] == "" {
				continue
			}
			if d := crossingDelay(ctx, p, name); d > 0 {
				list = append(list, &api.CrossingDelay{
					To: process, Transport: name, Local: e.Machine != "" && e.Machine == n.members.links.Machine,
					Microseconds: float64(d) / float64(time.Microsecond),
				})
			}
		}
	}
	return list
}

// crossingDelay returns the round-trip time of an empty request to the peer
// over a transport; 0 if it does not answer.
func crossingDelay(ctx context.Context, p *members.Peer, name string) time.Duration {
	l := &members.Link{Transport: name, Ready: make(chan struct{})} // the plan may not use this transport
	p.Dial(l)
	if l.Err != nil {
		return 0
	}
	defer l.Conn.Close()
	var took []time.Duration
	for range crossings {
		began := time.Now()
		if _, err := l.Conn.Call(ctx, members.PingMethod, nil); err != nil {
			break
		}
		took = append(took, time.Since(began))
	}
	return quantile.Median(took)
}
