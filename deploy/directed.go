package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/flow"
)

// Where the partitions of a plan are parts of one network, services for the
// whole network call services that run per partition, such as the southbound,
// without knowing that there are several. A call goes to the partition of the
// switch that it names, is divided among the partitions of its switches, or
// goes to all partitions, whose answers are merged (api.Routings).

// partPatience is how long a call to several partitions waits for one that does
// not answer, if the call can do without it. A call to a single partition waits
// as long as any other call.
const partPatience = time.Second

// directed returns how to route a call to partitions; false if the call goes to
// any instance within reach.
func (n *Node) directed(m weft.Method) (*members.View, *api.Routing, bool) {
	v := n.members.links.View.Load()
	if v.Parts == nil {
		return nil, nil, false
	}
	d, ok := v.Parts.Methods[m.MethodName()]
	return v, d, ok
}

// errReplanned says that a call was routed by a plan that is not in force any
// more.
var errReplanned = api.Errorf(codes.Aborted, "another plan has come into force meanwhile")

// direct makes a call to partitions for a service of this process, or (from is
// nil) for a client outside. It repeats the call if another plan comes into
// force.
func (n *Node) direct(ctx context.Context, from *local.Service, m weft.Method, req any) (any, error) {
	for {
		v, dir, ok := n.directed(m)
		if !ok && from == nil {
			return n.call(ctx, nil, m, req)
		}
		if !ok {
			return from.CallHere(ctx, m, req)
		}
		c := directedCall{n: n, from: from, view: v, parts: v.Parts, method: m, direction: dir}
		resp, err := c.make(ctx, req)
		if !errors.Is(err, errReplanned) {
			return resp, err
		}
	}
}

// make makes the call with the current view.
func (c directedCall) make(ctx context.Context, req any) (any, error) {
	dir := c.direction
	if d, ok := req.(*flow.Decision); ok {
		return c.decide(ctx, d)
	}
	msg := req.(proto.Message)
	if dir.List != "" {
		if shares := divide(msg, dir.List, c.partition); len(shares) > 0 {
			return c.shared(ctx, shares)
		}
	}
	if sw := textIn(msg, dir.Switch); sw != "" {
		return c.one(ctx, c.partition(sw), req)
	}
	return c.all(ctx, msg)
}

// partition returns the partition of a switch by its text. Invalid text goes to
// the first partition, which rejects it.
func (c *directedCall) partition(sw string) string {
	dpid, err := flow.ParseDPID(sw)
	if err != nil {
		return c.parts.Plan.Partitions[0].Name
	}
	return c.parts.Plan.PartitionOf(dpid)
}

// directedCall is a call to one partition or several.
type directedCall struct {
	n         *Node
	from      *local.Service // nil: a client outside
	view      *members.View  // by which it is routed
	parts     *members.Parts // of the view
	method    weft.Method
	direction *api.Routing
}

// one sends a request to a partition and waits as long as any other call.
func (c *directedCall) one(ctx context.Context, partition string, req any) (any, error) {
	return c.put(ctx, req, reach{partition: partition, patience: local.CallPatience})
}

// put sends a request to an instance within reach; by pointer if it is in this
// process.
func (c *directedCall) put(ctx context.Context, req any, within reach) (any, error) {
	within.directed = c.view
	if c.from != nil && within.partition == c.parts.Own && c.n.worker.Running().Methods[c.method.MethodName()] != nil {
		return c.from.CallHere(ctx, c.method, req)
	}
	return c.n.callIn(ctx, c.from, c.method, req, within)
}

// answer is the answer of a partition.
type answer struct {
	partition string
	resp      proto.Message
	err       error
}

// ask sends requests to partitions concurrently and returns the answers in the
// order of the plan.
func (c *directedCall) ask(ctx context.Context, requests map[string]proto.Message, within reach) []answer {
	var answers []answer
	for _, x := range c.parts.Plan.Partitions {
		if requests[x.Name] != nil {
			answers = append(answers, answer{partition: x.Name})
		}
	}
	var asked sync.WaitGroup
	for i := range answers {
		a := &answers[i]
		at := within
		at.partition = a.partition
		asked.Go(func() {
			resp, err := c.put(ctx, requests[a.partition], at)
			if a.err = err; err == nil {
				a.resp = resp.(proto.Message)
			}
		})
	}
	asked.Wait()
	return answers
}

// all sends a request to all partitions that run the service and merges the
// answers.
func (c *directedCall) all(ctx context.Context, req proto.Message) (any, error) {
	owner := members.OwnerOf(c.method.MethodName())
	requests := map[string]proto.Message{}
	for _, x := range c.parts.Plan.Partitions {
		if c.parts.Runs[x.Name][owner] {
			requests[x.Name] = req
		}
	}
	patience := local.CallPatience
	if c.direction.Incomplete != "" {
		patience = partPatience
	}
	answers := c.ask(ctx, requests, reach{patience: patience})
	if err := c.failed(answers); err != nil {
		return nil, err
	}
	return c.merge(answers), nil
}

// shared sends the shares of a divided request to their partitions. A share
// whose partition is unreachable fails the call, but not the other shares.
func (c *directedCall) shared(ctx context.Context, shares map[string]share) (any, error) {
	requests := map[string]proto.Message{}
	for name, s := range shares {
		requests[name] = s.req
		if len(shares) == 1 {
			return c.one(ctx, name, s.req)
		}
	}
	answers := c.ask(ctx, requests, reach{patience: partPatience, present: c.direction.Error != ""})
	if c.direction.Error != "" {
		for i, a := range answers { // the switches of an unreachable partition do not answer
			if a.err != nil && api.KindOf(a.err) == codes.Unavailable {
				answers[i].resp, answers[i].err = c.unanswered(len(shares[a.partition].at), a.err), nil
			}
		}
	}
	if err := c.failed(answers); err != nil {
		return nil, err
	}
	resp := c.merge(answers)
	if c.direction.Answers != "" {
		inOrder(resp, c.direction.Answers, answers, shares)
	}
	return resp, nil
}

// failed returns the error of a call; nil if all partitions answered, or if the
// answers have room to say which are missing.
func (c *directedCall) failed(answers []answer) error {
	var errs []error
	bad := answers[:0:0]
	for _, a := range answers {
		if a.err != nil {
			errs = append(errs, fmt.Errorf("partition %s: %w", a.partition, a.err))
			bad = append(bad, a)
		}
	}
	switch {
	case len(bad) == 0:
		return nil
	case len(bad) == len(answers), c.direction.Incomplete == "", slices.ContainsFunc(bad, func(a answer) bool { return api.KindOf(a.err) != codes.Unavailable }):
		kind := api.KindOf(bad[0].err)
		if len(bad) < len(answers) {
			var did []string
			for _, a := range answers {
				if a.err == nil {
					did = append(did, a.partition)
				}
			}
			return api.Errorf(kind, "%w; partition %s has answered: what was asked is done there", errors.Join(errs...), strings.Join(did, ", "))
		}
		return api.Errorf(kind, "%w", errors.Join(errs...))
	}
	return nil
}

// reach describes the instances that a call may go to: those of a partition,
// and how long the call waits for them.
type reach struct {
	partition string // empty: any instance within reach
	patience  time.Duration
	present   bool          // do not wait if there are none now
	directed  *members.View // by which the partition was chosen; nil if none was
}

// instances returns the instances of a service within reach now.
func (r reach) instances(v *members.View, service string) []*members.Target {
	return v.Of(service, r.partition)
}

// where names, for an error, the place where no instance was reachable.
func (r reach) where() string {
	if r.partition == "" {
		return ""
	}
	return " of partition " + r.partition
}
