package deploy

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/transport"
)

// watchMethod asks a process for the packets that somebody watches.
const watchMethod = "deploy.Watch"

// Times and bounds of watching packets.
const (
	watchPeriod  = 200 * time.Millisecond // between two questions to all processes
	watchTimeout = 600 * time.Millisecond // of a question
	watchQueue   = 256                    // packets that wait for one client
	watchRounds  = 8                      // questions at once to a process that has more to tell
	watchHolds   = 3                      // rounds at most until a watch samples though not all processes have heard of it
)

// watchers are the clients that watch packets in this process, and what is known
// of the packets. While there are any, it asks all processes again and again.
type watchers struct {
	members *membership
	worker  *local.Worker

	mu      sync.Mutex // guards what follows
	clients map[uint64]*watcher
	stop    context.CancelFunc // ends the asking; nil if nobody watches
}

// watcher is one client.
type watcher struct {
	watch  *api.PacketWatch
	pace   local.Pace // of all processes together
	lines  chan *api.WatchedPacket
	missed uint32 // guarded by watchers.mu
}

// WatchPackets calls tell for every packet-in of any process that a request asks
// for, until ctx ends or tell fails. It calls it with an empty line first, and
// whenever beat has passed without a packet.
func (l *watchers) WatchPackets(ctx context.Context, r *api.WatchPacketsRequest, beat time.Duration, tell func(*api.WatchPacketsResponse) error) error {
	if _, _, err := local.CheckWatch(r); err != nil {
		return api.Errorf(codes.InvalidArgument, "%w", err)
	}
	if r.MaxPerS > local.MaxWatchRate {
		return api.Errorf(codes.InvalidArgument, "max_per_s %d: want 1 to %d packets per second, or 0 for %d", r.MaxPerS, local.MaxWatchRate, local.MaxWatchRate)
	}
	w := &watcher{watch: &api.PacketWatch{Id: rand.Uint64() | 1, Wanted: r}, lines: make(chan *api.WatchedPacket, watchQueue)}
	w.pace.Set(r.MaxPerS)
	if !l.add(w) {
		return api.Errorf(codes.ResourceExhausted, "%d clients watch packets already, and no more may at once; end one of them", local.MostWatches)
	}
	defer l.remove(w)
	if err := tell(&api.WatchPacketsResponse{}); err != nil {
		return err
	}
	idle := time.NewTimer(beat)
	defer idle.Stop()
	for {
		line := &api.WatchPacketsResponse{}
		select {
		case <-ctx.Done():
			return local.ErrorOf(ctx.Err())
		case <-idle.C:
		case line.Packet = <-w.lines:
		}
		l.mu.Lock()
		line.Missed, w.missed = w.missed, 0
		l.mu.Unlock()
		if err := tell(line); err != nil {
			return err
		}
		idle.Reset(beat)
	}
}

// add adds a client; false if there are too many.
func (l *watchers) add(w *watcher) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.clients) >= local.MostWatches {
		return false
	}
	l.clients[w.watch.Id] = w
	if l.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		l.stop = stop
		go l.askForPackets(ctx)
	}
	return true
}

// remove removes a client, and ends the asking after the last.
func (l *watchers) remove(w *watcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.clients, w.watch.Id)
	if len(l.clients) == 0 {
		l.stop()
		l.stop = nil
	}
}

// wanted returns what the clients want.
func (l *watchers) wanted() (list []*api.PacketWatch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.clients {
		list = append(list, w.watch)
	}
	return list
}

// spreading counts for each watch, by its id, the rounds in which processes have
// been asked for it.
type spreading map[uint64]int

// order returns the watches of the next round. New ones are held, so that no
// process samples a packet before those that it goes to know that it is watched.
func (s spreading) order(wanted []*api.PacketWatch) (list []*api.PacketWatch, held bool) {
	asked := maps.Clone(s)
	clear(s)
	for _, w := range wanted {
		s[w.Id] = asked[w.Id]
		if asked[w.Id] < watchHolds {
			w = &api.PacketWatch{Id: w.Id, Wanted: w.Wanted, Hold: true}
			held = true
		}
		list = append(list, w)
	}
	return list, held
}

// round records that a round is over. all reports that every process has answered.
func (s spreading) round(all bool) {
	for id := range s {
		if s[id]++; all {
			s[id] = watchHolds
		}
	}
}

// tell queues a packet for those who want it.
func (l *watchers) tell(ids []uint64, p *api.WatchedPacket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		w := l.clients[id]
		if w == nil || !w.pace.Admits(time.Now().UnixNano()) {
			continue
		}
		select {
		case w.lines <- p:
		default:
			w.missed++
		}
	}
}

// askForPackets asks all processes for packets until ctx ends, and then once to
// end it. Processes that are not asked any more sample for some seconds at most.
func (l *watchers) askForPackets(ctx context.Context) {
	after := map[uint64]uint64{} // positions, by the run of the process
	run := rand.Uint64()         // not l.members.self: two runs of this may overlap
	walks := packetTraces{by: map[uint64]*packetTrace{}, now: time.Now, order: l.worker.Pipeline}
	spread := spreading{}
	tick := time.NewTicker(watchPeriod)
	defer tick.Stop()
	for {
		order, held := &api.WatchOrder{Asker: run}, false
		if ctx.Err() == nil {
			order.Watches, held = spread.order(l.wanted())
		}
		answers, all := l.askAll(order, after)
		spread.round(all)
		for _, answer := range answers {
			walks.add(answer)
		}
		if ctx.Err() != nil {
			return
		}
		for _, w := range walks.takeReady() {
			l.tell(w.watches, w.packet)
		}
		if held && all {
			continue // all know of it: sample at once
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// askAll asks all processes, this one too, and returns their answers, and whether
// all have answered.
func (l *watchers) askAll(order *api.WatchOrder, after map[uint64]uint64) (answers []*api.WatchSpans, all bool) {
	ctx, cancel := context.WithTimeout(context.Background(), watchTimeout)
	defer cancel()
	var mu sync.Mutex // guards answers, after and all
	all = true
	ask := func(run uint64, f func(o *api.WatchOrder) *api.WatchSpans) {
		for range watchRounds {
			o := proto.CloneOf(order)
			mu.Lock()
			o.After = after[run]
			mu.Unlock()
			answer := f(o)
			mu.Lock()
			if answer == nil {
				all = false
				mu.Unlock()
				return
			}
			after[run] = answer.Next
			answers = append(answers, answer)
			mu.Unlock()
			if !answer.More {
				return
			}
		}
	}
	var asked sync.WaitGroup
	here := map[uint64]bool{l.members.self: true}
	for _, p := range l.members.others() {
		run := p.Entry.Load().Incarnation
		here[run] = true
		asked.Go(func() {
			ask(run, func(o *api.WatchOrder) *api.WatchSpans {
				request, err := proto.Marshal(o)
				if err != nil {
					return nil
				}
				answer, err := p.Request(ctx, watchMethod, request)
				spans := &api.WatchSpans{}
				if err != nil || len(answer) == 0 || answer[0] != members.AnswerOK || proto.Unmarshal(answer[1:], spans) != nil {
					return nil // it is asked again soon
				}
				return spans
			})
		})
	}
	ask(l.members.self, l.worker.Recorder().Watch)
	asked.Wait()
	for run := range after {
		if !here[run] {
			delete(after, run)
		}
	}
	return answers, all
}

// answerWatch answers another process's request for traced packets.
func (l *watchers) answerWatch(request []byte) ([]byte, error) {
	o := &api.WatchOrder{}
	if err := proto.Unmarshal(request, o); err != nil {
		return nil, transport.Errorf(transport.Code(codes.InvalidArgument), "decode what is to be watched: %v", err)
	}
	return proto.MarshalOptions{}.MarshalAppend([]byte{members.AnswerOK}, l.worker.Recorder().Watch(o))
}
