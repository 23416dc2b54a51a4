package deploy

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
)

// crossingsMethod asks a process for its crossings.
const crossingsMethod = "deploy.Crossings"

// countCall counts a call that a service of this process made through callIn;
// peer is nil if this process answered it.
func (n *Node) countCall(from *local.Service, owner, method string, peer *members.Peer, began time.Time) {
	if from == nil {
		return // a client outside
	}
	of := local.CrossingOf{From: from.Spec.Name, To: owner, Kind: "call", Name: method, Transport: plan.Inproc}
	if peer != nil {
		of.ToProcess, of.Transport = peer.Entry.Load().Process, peer.TransportOf(method)
	}
	t := n.worker.Crossings().Of(of)
	t.Add(1)
	t.Took(time.Since(began), 1)
}

// processName returns the name of this process, as ListWorkers has it.
func (n *Node) processName() string {
	if n.config.Alone {
		return aloneName
	}
	return n.config.Process
}

// encodeCrossings answers another process's request for crossings.
func (n *Node) encodeCrossings() ([]byte, error) {
	mine := n.worker.Crossings().List(n.processName(), time.Now())
	return proto.MarshalOptions{}.MarshalAppend([]byte{members.AnswerOK}, &api.ListCrossingsResponse{Crossings: mine})
}

// ListCrossings returns the messages between the services of all processes.
func (n *Node) ListCrossings(ctx context.Context, _ *api.ListCrossingsRequest) (*api.ListCrossingsResponse, error) {
	peers := n.members.others()
	names := slices.Sorted(maps.Keys(peers))
	lists := make([]*api.ListCrossingsResponse, len(names))
	failed := make([]string, len(names))
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	var asked sync.WaitGroup
	for i, name := range names {
		asked.Go(func() {
			lists[i] = &api.ListCrossingsResponse{}
			answer, err := peers[name].Request(ctx, crossingsMethod, nil)
			switch {
			case err != nil:
				failed[i] = "it does not answer: " + err.Error()
			case len(answer) == 0 || answer[0] != members.AnswerOK:
				failed[i] = "it has no figures; it may be of another version"
			default:
				if err := proto.Unmarshal(answer[1:], lists[i]); err != nil {
					lists[i], failed[i] = nil, "its answer cannot be read: "+err.Error()
				}
			}
		})
	}
	all := n.worker.Crossings().List(n.processName(), time.Now())
	asked.Wait()
	resp := &api.ListCrossingsResponse{}
	for i, name := range names {
		all = append(all, lists[i].GetCrossings()...)
		if failed[i] != "" {
			resp.Missing = append(resp.Missing, &api.CrossingsMissing{Process: name, Error: failed[i]})
		}
	}
	resp.Crossings = joinEvents(all)
	return resp, nil
}

// joinEvents makes one of the two halves of the events between two processes:
// the publisher's, until they are in the queue of the subscriber's process, and
// that process's, until they are handled, whose counts hold. Only the first
// knows the transport.
func joinEvents(all []*api.Crossing) []*api.Crossing {
	type half struct{ from, to, fromProcess, toProcess, name string }
	of := func(x *api.Crossing) half { return half{x.From, x.To, x.FromProcess, x.ToProcess, x.Name} }
	handled := map[half]*api.Crossing{}
	for _, x := range all {
		if x.Kind == "event" && x.Transport == "" {
			handled[of(x)] = x
		}
	}
	// After a change of the transport there are several of the first.
	slices.SortStableFunc(all, func(a, b *api.Crossing) int { return cmp.Compare(b.PerS, a.PerS) })
	list := all[:0]
	joined := map[half]bool{}
	for _, x := range all {
		key := of(x)
		then := handled[key]
		switch {
		case x.Kind != "event" || x.FromProcess == x.ToProcess || then == nil:
			list = append(list, x)
		case x != then && !joined[key]:
			joined[key] = true
			local.AddLatency(x, then)
			x.Total, x.PerS = then.Total, then.PerS
			list = append(list, x)
		}
	}
	for key, x := range handled {
		if !joined[key] { // the publisher's process does not answer
			list = append(list, x)
		}
	}
	local.SortCrossings(list)
	return list
}
