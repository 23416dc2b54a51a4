package gateway

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// ownAnswers is what answers the gateway's own methods: the gateway, the node of its
// process, and others of the process.
type ownAnswers struct{ of map[string]api.Answer }

func (o *ownAnswers) add(list ...api.Answer) {
	for _, a := range list {
		o.of[a.Method] = a
	}
}

// answer returns the answer of a method; where nothing of the process answers it, an
// error that says so.
func (o *ownAnswers) answer(m api.AnyMethod) api.Answer {
	if a, ok := o.of[m.MethodName()]; ok {
		return a
	}
	return api.Answer{
		Method: m.MethodName(), New: func() any { req, _ := m.NewMessages(); return req },
		Call: func(context.Context, any) (any, error) {
			return nil, api.Errorf(codes.Unimplemented, "this gateway runs outside a controller's process, which could answer %s", m.MethodName())
		},
	}
}

// askAll are the methods that ask all processes and whose requests are empty: one call is
// made for all clients that wait.
var askAll = map[string]bool{
	api.ListWorkers.Name: true, api.GetWork.Name: true, api.ListCrossings.Name: true, api.GetScaling.Name: true, api.GetStore.Name: true,
}

// toClients returns the answers that clients are offered.
func (o *ownAnswers) toClients(timeout time.Duration) (list []api.Answer) {
	for _, m := range api.Methods() {
		if !strings.HasPrefix(m.MethodName(), "gateway.") {
			continue
		}
		a := o.answer(m)
		if askAll[a.Method] {
			a.Call = (&together{call: a.Call, request: a.New, timeout: timeout}).do
		}
		if a.Method == api.ReadWorkerLog.Name {
			a.Call = withoutSecrets(a.Call)
		}
		list = append(list, a)
	}
	return list
}

// noNode is Node for a gateway outside a controller's process.
type noNode struct{}

func (noNode) Pipeline() []string { return nil }

func (noNode) Answers() []api.Answer { return nil }

func (noNode) FollowScaling(ctx context.Context, _ func(*api.ScalingDecision)) { <-ctx.Done() }

func (noNode) WatchPackets(context.Context, *api.WatchPacketsRequest, time.Duration, func(*api.WatchPacketsResponse) error) error {
	return api.Errorf(codes.Unimplemented, "this gateway runs outside a controller's process, which could watch packets")
}
