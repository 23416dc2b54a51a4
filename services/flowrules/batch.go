package flowrules

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// The bounds of batches: the number of open ones, the time after which an open
// one without new parts is dropped, and the finished ones whose outcome is kept.
const (
	maxOpen     = 4
	openTime    = time.Minute
	maxFinished = 64
)

var batchName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`)

// The states of a batch.
const (
	batchOpen       = "open"       // its parts arrive; nothing is desired yet
	batchChecking   = "checking"   // all parts have arrived; they are checked and written down
	batchStoring    = "storing"    // it is certain that all its entries become desired
	batchInstalling = "installing" // the switches confirm them
	batchWaiting    = "waiting"    // a switch has not answered for long, or is away
	batchUndoing    = "undoing"    // a switch has refused one: all are taken back
	batchDone       = "done"
	batchUndone     = "undone"
	batchTried      = "tried" // it was a dry run
)

// batch is a set of the operator's entries that become desired all or none.
type batch struct {
	name       string
	generation uint8
	parts      map[uint32]bool // received parts
	changes    []changed
	touched    time.Time
	state      string
	written    int // number of its values in the journal
	stored     int
	reason     string // why it is being undone
	refused    []*api.WantedFlow
	outcome    *api.FlowBatch // when it is finished; without entries
}

// changed is an entry of a batch and the entry that it replaces.
type changed struct {
	target
	before *rule // nil: nothing
}

// batches are the batches of a run of the service.
type batches struct {
	mu    sync.Mutex // guards what follows
	known map[string]*batch
	order []string // of known, oldest first
	queue []*batch // certain and not finished
	bell  chan struct{}
	turn  sync.Mutex // one batch at a time stores its entries or takes them back; taken before all others
}

func newBatches() *batches { return &batches{known: map[string]*batch{}, bell: make(chan struct{}, 1)} }

// addPart adds a part to a batch. The last part commits the batch.
func (r *Rules) addPart(ctx context.Context, req *api.AddFlowsRequest) (*api.AddFlowsResponse, error) {
	if !batchName.MatchString(req.GetBatch()) {
		return nil, api.Errorf(codes.InvalidArgument, "batch %.80q: want up to 64 letters, digits and dashes", req.GetBatch())
	}
	if req.GetPart() == 0 {
		return nil, api.Errorf(codes.InvalidArgument, "batch %s: part 0: number the parts from 1", req.GetBatch())
	}
	b, err := r.open(req, time.Now())
	if err != nil {
		r.count.countRejection("batch")
		return nil, err
	}
	switch {
	case req.GetTotal() != 0 && req.GetDryRun():
		if err := r.tryBatch(b, int(req.GetTotal())); err != nil {
			return nil, err
		}
	case req.GetTotal() != 0:
		if err := r.commit(ctx, b, int(req.GetTotal())); err != nil {
			return nil, err
		}
	}
	return &api.AddFlowsResponse{Flows: r.refusedOf(b), Batch: r.statusOf(b)}, nil
}

// open returns the batch of a part, with its entries. A repeated part changes
// nothing.
func (r *Rules) open(req *api.AddFlowsRequest, now time.Time) (*batch, error) {
	changes := make([]changed, 0, len(req.GetFlows()))
	for _, f := range req.GetFlows() {
		sw, e, err := admit(f)
		if err != nil {
			r.count.countRejection("invalid")
			r.batches.drop(batchKey(req))
			return nil, api.Errorf(codes.InvalidArgument, "batch %s is dropped: %w", req.GetBatch(), err)
		}
		if app := api.AppOf(f.GetOwner()); app != "" {
			r.count.countRejection("owner")
			r.batches.drop(batchKey(req))
			return nil, api.Errorf(codes.InvalidArgument, "batch %s is dropped: it has entries of app %s, and apps add theirs without a batch", req.GetBatch(), app)
		}
		changes = append(changes, changed{target: target{sw: sw, entry: e}})
	}
	s := r.batches
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	name := batchKey(req)
	b := s.known[name]
	if b == nil {
		if req.GetPart() != 1 {
			return nil, api.Errorf(codes.FailedPrecondition, "batch %s is not known, or was dropped: begin again with part 1", req.GetBatch())
		}
		open := 0
		for _, other := range s.known {
			if other.state == batchOpen {
				open++
			}
		}
		if open >= maxOpen {
			return nil, api.Errorf(codes.ResourceExhausted, "%d batches are open already: commit one, or wait %v until one is dropped", open, openTime)
		}
		generation := uint8(0)
		if !req.GetDryRun() {
			generation = uint8(r.generation.Add(1))
		}
		b = &batch{name: name, generation: generation, parts: map[uint32]bool{}, state: batchOpen}
		s.add(b)
	}
	if b.state != batchOpen || b.parts[req.GetPart()] {
		return b, nil
	}
	held := len(changes)
	for _, other := range s.known {
		if other.state == batchOpen {
			held += len(other.changes)
		}
	}
	if held > r.cfg.MaxFlows {
		s.forget(b.name)
		return nil, api.Errorf(codes.ResourceExhausted, "batch %s is dropped: open batches would have %d entries, and at most %d may be (flowrules.max_flows)", b.title(), held, r.cfg.MaxFlows)
	}
	for i := range changes {
		changes[i].entry = operatorEntry(changes[i].entry, b.generation)
	}
	b.parts[req.GetPart()], b.touched = true, now
	b.changes = append(b.changes, changes...)
	return b, nil
}

// commit makes it certain that all entries of a batch become desired, even if the
// service ends afterwards. It does nothing if that is so already.
func (r *Rules) commit(ctx context.Context, b *batch, total int) error {
	s := r.batches
	s.mu.Lock()
	if b.state != batchOpen {
		s.mu.Unlock()
		return nil
	}
	b.state = batchChecking // so that nobody else commits or drops it
	s.mu.Unlock()
	err := r.certify(ctx, b, total)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.forget(b.name)
		return err
	}
	b.state = batchStoring
	s.push(b)
	return nil
}

// certify checks all of a batch and writes it to the journal.
func (r *Rules) certify(ctx context.Context, b *batch, total int) error {
	if err := r.complete(b, total); err != nil {
		return err
	}
	changes := lastOfEach(b.changes)
	added, err := r.checkRoom(targetsOf(changes))
	if err != nil {
		return err
	}
	r.flows.Add(int64(added))
	for i := range changes {
		c := &changes[i]
		if w := r.known(c.sw); w != nil {
			w.mu.Lock()
			if old := w.ledger.operatorRule(idOf(&c.entry)); old != nil {
				before := *old
				c.before = &before
			}
			w.mu.Unlock()
		}
	}
	r.batches.set(b, func(b *batch) { b.changes = changes })
	if err := r.journal.write(ctx, b); err != nil {
		r.count.unstored.Add(1)
		r.operatorFlows()
		// A failed write may have succeeded all the same.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Deadline)
		defer cancel()
		if err := r.journal.remove(ctx, b); err != nil {
			return api.Errorf(codes.Unavailable, "batch %s: the store does not answer, and whether its entries are added is seen when it does: %w; see weft get flows", b.name, err)
		}
		return api.Errorf(codes.Unavailable, "batch %s is dropped, and none of its entries is added: %w; try again", b.name, err)
	}
	return nil
}

// complete refuses a batch that has not as many entries as are to be.
func (r *Rules) complete(b *batch, total int) error {
	if len(b.changes) == total {
		return nil
	}
	r.count.countRejection("batch")
	return api.Errorf(codes.FailedPrecondition, "batch %s is dropped: it has %d entries of %d. Parts are missing, or its switches are of several partitions: send a batch for each partition", b.title(), len(b.changes), total)
}

// lastOfEach drops entries that a later one with the same key replaces.
func lastOfEach(changes []changed) []changed {
	type place struct {
		sw flow.DPID
		entryID
	}
	last := make(map[place]int, len(changes))
	for i := range changes {
		last[place{changes[i].sw, idOf(&changes[i].entry)}] = i
	}
	kept := make([]changed, 0, len(last))
	for i := range changes {
		if last[place{changes[i].sw, idOf(&changes[i].entry)}] == i {
			kept = append(kept, changes[i])
		}
	}
	return kept
}

func targetsOf(changes []changed) []target {
	list := make([]target, len(changes))
	for i := range changes {
		list[i] = changes[i].target
	}
	return list
}

// statusOf returns how far a batch is.
func (r *Rules) statusOf(b *batch) *api.FlowBatch {
	r.batches.mu.Lock()
	if b.outcome != nil {
		defer r.batches.mu.Unlock()
		return b.outcome
	}
	m := &api.FlowBatch{Name: b.title(), State: b.state, Entries: uint32(len(b.changes)), Stored: uint32(b.stored), Reason: b.reason}
	changes := b.changes // nobody writes to them once they are certain
	r.batches.mu.Unlock()
	if m.State == batchInstalling || m.State == batchWaiting {
		open := map[flow.DPID]bool{}
		for i := range changes {
			switch state, wanted := r.stateOf(&changes[i]); {
			case state == confirmed:
				m.Confirmed++
			case state == failed:
				m.Failed++
			case wanted != nil:
				open[changes[i].sw] = true
			}
		}
		if m.State == batchWaiting {
			m.Reason = waitingFor(open)
		}
	}
	return m
}

// waitingFor says which switches a batch waits for.
func waitingFor(open map[flow.DPID]bool) string {
	const most = 5
	list := slices.Sorted(maps.Keys(open))
	var b strings.Builder
	for _, sw := range list[:min(len(list), most)] {
		fmt.Fprintf(&b, ", %v", sw)
	}
	if more := len(list) - most; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return "away, or without an answer so far: switch " + strings.TrimPrefix(b.String(), ", ") + "; if one refuses an entry, all are taken back"
}

func (r *Rules) refusedOf(b *batch) []*api.WantedFlow {
	r.batches.mu.Lock()
	defer r.batches.mu.Unlock()
	return slices.Clone(b.refused)
}

// stateOf returns how far an entry of a batch is; requested if its switch is
// away, or another request has replaced it.
func (r *Rules) stateOf(c *changed) (state, *api.WantedFlow) {
	w := r.worker(c.sw)
	w.mu.Lock()
	defer w.mu.Unlock()
	rule := w.ledger.operatorRule(idOf(&c.entry))
	if rule == nil || !rule.same(&c.entry) {
		return requested, nil
	}
	return rule.state, w.ledger.wantedFlow(rule)
}

// drop forgets an open batch.
func (s *batches) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.known[name]; b != nil && b.state == batchOpen {
		s.forget(name)
	}
}

// add, forget, expire and push need mu held.
func (s *batches) add(b *batch) {
	s.known[b.name] = b
	s.order = append(s.order, b.name)
	for _, name := range slices.Clone(s.order) {
		if len(s.known) <= maxFinished {
			break
		}
		if s.known[name].state == batchTried {
			s.forget(name)
		}
	}
}

// trimFinished forgets and returns the first finished batches if there are too many.
func (s *batches) trimFinished() (list []*batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Clone(s.order) {
		if len(s.known) <= maxFinished {
			break
		}
		if b := s.known[name]; b.outcome != nil {
			s.forget(name)
			if b.state != batchTried {
				list = append(list, b)
			}
		}
	}
	return list
}

func (s *batches) forget(name string) {
	delete(s.known, name)
	s.order = slices.DeleteFunc(s.order, func(n string) bool { return n == name })
}

// expire forgets open batches that have received no part for a while, and dry
// runs of then.
func (s *batches) expire(now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(s.known)) {
		if b := s.known[name]; (b.state == batchOpen || b.state == batchTried) && now.Sub(b.touched) > openTime {
			s.forget(name)
		}
	}
}

// push queues the batch to be carried out.
func (s *batches) push(b *batch) {
	s.queue = append(s.queue, b)
	object.Notify(s.bell)
}

// next returns the next batch to carry out, nil if ctx ends.
func (s *batches) next(ctx context.Context) *batch {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 {
			b := s.queue[0]
			s.queue = s.queue[1:]
			s.mu.Unlock()
			return b
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-s.bell:
		}
	}
}

// set changes the state of a batch.
func (s *batches) set(b *batch, change func(*batch)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(b)
}
