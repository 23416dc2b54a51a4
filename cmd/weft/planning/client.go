package planning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/plan/partition"
)

// What is made for a client is bounded, for it is computed beside the work of the
// controller: one plan at a time.
const (
	clientPatience  = 10 * time.Second
	clientProcesses = 256
)

// clientMost is what a plan for a client is made of at most.
func clientMost() *Most {
	return &Most{Switches: 256, Links: 4096, Servers: 32, Partitions: 16, Steps: 2_000_000}
}

// The names of the files whose texts a client gives.
const (
	profileFile = "profile"
	serversFile = "servers"
)

// sources returns where that is read from which a plan is made for a client: what
// it gives, never a file of this machine.
func (p *Planner) sources(b *api.PlanBasis) Sources {
	texts := map[string]string{}
	if b.GetProfile() != "" {
		texts[profileFile] = b.Profile
	}
	if b.GetServers() != "" {
		texts[serversFile] = b.Servers
	}
	return Sources{
		Specs:   p.Specs,
		Network: p.Network, Most: clientMost(),
		File: func(name string) ([]byte, error) {
			text, ok := texts[name]
			if !ok {
				return nil, fmt.Errorf("file %q: the controller reads no files of clients; give its text in basis", name)
			}
			return []byte(text), nil
		},
		Plan: func(name string) (string, []byte, error) {
			return "", nil, fmt.Errorf("plan %q: the controller reads no files of clients; take --current out of the head", name)
		},
		Partitions: func(context.Context, *partition.Graph, partition.Options, Choose) (int, error) {
			return 0, optionErrorf("--partitions auto: a controller does not measure how many are best; give a number")
		},
		Assumed: func(string) {}, // is in the notes, or in the head
	}
}

// clientOptions returns the options that a client has set.
func clientOptions(b *api.PlanBasis) (*pflag.FlagSet, error) {
	var o Options
	f := pflag.NewFlagSet("basis", pflag.ContinueOnError)
	o.Flags(f)
	values := map[string]string{"network": b.GetNetwork()}
	if b.GetProfile() != "" {
		values["profile"] = profileFile
	}
	if values["servers"] = b.GetServers(); b.GetServers() != "" {
		if _, err := strconv.Atoi(b.Servers); err != nil {
			values["servers"] = serversFile
		}
	}
	if b.GetPacketIns() != 0 {
		values["packet-ins"] = strconv.FormatFloat(b.PacketIns, 'g', -1, 64)
	}
	for name, value := range values {
		if value == "" {
			continue
		}
		if err := f.Set(name, value); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// ExplainPlan says why the services of a plan are where they are.
func (p *Planner) ExplainPlan(ctx context.Context, r *api.ExplainPlanRequest) (*api.ExplainPlanResponse, error) {
	text, err := p.text(ctx, r.GetText())
	if err != nil {
		return nil, err
	}
	if _, err := p.read(text); err != nil {
		return nil, err
	}
	m := &api.ExplainPlanResponse{}
	return m, p.made(ctx, r.GetBasis(), func(ctx context.Context, from Sources, options *pflag.FlagSet) error {
		made, err := ReadMade(text.Source, text.Text, options)
		if err != nil {
			return err
		}
		e, err := made.Explain(ctx, from, r.GetShard())
		if err != nil {
			return err
		}
		return message(e, m)
	})
}

// made runs what makes plans for a client, one at a time and not for long.
func (p *Planner) made(ctx context.Context, b *api.PlanBasis, run func(context.Context, Sources, *pflag.FlagSet) error) error {
	if !p.making.TryLock() {
		return api.Errorf(codes.ResourceExhausted, "another plan is being explained or weighed; ask again in a moment")
	}
	defer p.making.Unlock()
	ctx, cancel := context.WithTimeout(ctx, clientPatience)
	defer cancel()
	options, err := clientOptions(b)
	if err == nil {
		err = run(ctx, p.sources(b), options)
	}
	var kind *api.Error
	var headless *headlessError
	switch {
	case err == nil || errors.As(err, &kind):
		return err
	case errors.As(err, &headless):
		return api.Errorf(codes.InvalidArgument, "%s: it has no head of weft plan make that says for which network it was made; give basis: network, and profile and servers if they are not the usual ones", headless.source)
	case errors.Is(err, context.DeadlineExceeded):
		return api.Errorf(codes.DeadlineExceeded, "to make the plan anew takes more than %v, which a controller does not spend; use weft plan", clientPatience)
	}
	return api.Errorf(codes.InvalidArgument, "%w", err)
}

// message puts what the command prints as JSON into a message, whose fields have
// the same names.
func message(from any, to proto.Message) error {
	text, err := json.Marshal(from)
	if err == nil {
		err = protojson.Unmarshal(text, to)
	}
	if err != nil {
		return api.Errorf(codes.Internal, "%w", err)
	}
	return nil
}
