package planning

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

// Text is a plan as it is written.
type Text struct {
	Source string // what to call it in errors
	Text   []byte
}

// Update is what differs between two plans and, if both were made by weft plan
// make, which moves lead from one to the other.
type Update struct {
	Old      string        `json:"old"`
	New      string        `json:"new"`
	Changes  []plan.Change `json:"changes"`
	Weighed  bool          `json:"weighed"` // both were made by weft plan make, so that what follows is known
	Why      string        `json:"why_not,omitempty"`
	Update   *plan.Update  `json:"update,omitempty"`
	Gain     float64       `json:"gain"`              // µs of latency a second
	PaysBack float64       `json:"pays_back_seconds"` // -1: never
	OldBreak []string      `json:"old_breaks,omitempty"`
	*Costs
}

// changes says what differs between two plans and what that costs; the moves are
// not weighed.
func changes(specs []weft.Spec, before, after *plan.Plan, rates map[wayOf]float64) (*Update, error) {
	u := &Update{Old: before.Name, New: after.Name, Changes: plan.Diff(before, after), PaysBack: -1}
	if u.Changes == nil {
		u.Changes = []plan.Change{}
	}
	var err error
	u.Costs, err = costs(specs, before, after, rates)
	return u, err
}

// Diff compares two plans. Options that are set in given count instead of those
// by which the new one was made.
func Diff(ctx context.Context, from Sources, before, after Text, given *pflag.FlagSet) (*Update, error) {
	return diff(ctx, from, before, after, given, nil)
}

// diff is Diff with the rates of messages, if they are known.
func diff(ctx context.Context, from Sources, before, after Text, given *pflag.FlagSet, rates map[wayOf]float64) (*Update, error) {
	oldPlan, err := plan.Parse(before.Source, before.Text)
	if err != nil {
		return nil, err
	}
	newPlan, err := plan.Parse(after.Source, after.Text)
	if err != nil {
		return nil, err
	}
	u, err := changes(from.Specs, oldPlan, newPlan, rates)
	if err != nil {
		return nil, err
	}
	next, err := ReadMade(after.Source, after.Text, given)
	if err != nil {
		u.Why = err.Error()
		return u, nil
	}
	former, err := ReadMade(before.Source, before.Text, given)
	if err != nil {
		u.Why = err.Error()
		return u, nil
	}
	// One load for both: that of the new plan.
	former.options.Cut.Network, former.options.profile, former.options.servers = next.options.Cut.Network, next.options.profile, next.options.servers
	former.options.packetIns, former.options.changes, former.options.delay = next.options.packetIns, next.options.changes, next.options.delay
	former.options.current, next.options.current = "", ""
	_, is, _, err := next.model(ctx, from)
	if err != nil {
		return nil, err
	}
	_, was, broken, err := former.model(ctx, from)
	if err != nil {
		return nil, err
	}
	u.Weighed, u.OldBreak = true, broken
	u.Update = plan.Moves(was, is, next.options.move())
	u.Gain = u.Update.Gain()
	if seconds, ever := u.Update.PaysBack(); ever {
		u.PaysBack = seconds
	}
	return u, nil
}
