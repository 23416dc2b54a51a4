package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/plan"
)

// The effects of a change.
const (
	EffectLive    = "live"    // a running service takes it over
	EffectRestart = "restart" // the service is started again
)

// CheckDocument reports everything that is wrong with a configuration for the
// given services, each on a line of its own as SOURCE:LINE: what is wrong.
func CheckDocument(source string, d *plan.Document, specs []weft.Spec, overrides ...Override) error {
	s := &Settings{}
	var errs []error
	for _, section := range d.Sections {
		errs = append(errs, s.Add(section.Service, source, section.Located()))
	}
	for _, o := range overrides {
		errs = append(errs, s.Set(string(o)))
	}
	return byLine(source, errors.Join(append(errs, s.Check(specs))...))
}

// byLine sorts the lines of an error by the source lines that they name.
func byLine(source string, err error) error {
	if err == nil {
		return nil
	}
	var list []error
	for text := range strings.Lines(err.Error()) {
		list = append(list, errors.New(strings.TrimSuffix(text, "\n")))
	}
	at := func(err error) int {
		rest, _ := strings.CutPrefix(err.Error(), source+":")
		number, _, _ := strings.Cut(rest, ":")
		line, _ := strconv.Atoi(number) // 0 if it is about none
		return line
	}
	slices.SortStableFunc(list, func(a, b error) int { return at(a) - at(b) })
	return errors.Join(list...)
}

// Difference returns how the configurations of services under a plan differ
// from those under another, and what becomes of it. Both are known to be right.
func Difference(old, new *plan.Plan, specs []weft.Spec, overrides ...Override) ([]*api.ConfigChange, error) {
	var list []*api.ConfigChange
	for i := range specs {
		spec := &specs[i]
		if spec.Config == nil {
			continue
		}
		var each [][]*api.ConfigChange // by worker
		for _, w := range new.Workers {
			if !slices.Contains(w.Services, spec.Name) {
				continue
			}
			before, err := Effective(old, w.Name, spec, overrides...)
			if err != nil {
				return nil, err
			}
			after, err := Effective(new, w.Name, spec, overrides...)
			if err != nil {
				return nil, err
			}
			each = append(each, changesIn(spec, w.Name, ChangesOf(before, after)))
		}
		if len(each) > 0 && !slices.ContainsFunc(each, func(x []*api.ConfigChange) bool { return !sameChanges(x, each[0]) }) {
			for _, c := range each[0] {
				c.Worker = ""
			}
			each = each[:1]
		}
		list = append(list, slices.Concat(each...)...)
	}
	return list, nil
}

func changesIn(spec *weft.Spec, worker string, changes []KeyChange) (list []*api.ConfigChange) {
	effect := EffectRestart
	if TakenLive(spec, changes) {
		effect = EffectLive
	}
	for _, c := range changes {
		list = append(list, &api.ConfigChange{Section: spec.Name, Key: c.Key, Old: c.old, New: c.new, Effect: effect, Worker: worker})
	}
	return list
}

func sameChanges(a, b []*api.ConfigChange) bool {
	return slices.EqualFunc(a, b, func(x, y *api.ConfigChange) bool {
		return x.Key == y.Key && x.Old == y.Old && x.New == y.New && x.Effect == y.Effect
	})
}

// Notes returns additional notes for the user.
func Notes(d *plan.Document, p *plan.Plan, changes []*api.ConfigChange, specs []weft.Spec, overrides []Override) (notes []string) {
	for _, o := range overrides {
		name, _, _ := strings.Cut(string(o), "=")
		service, key, _ := strings.Cut(name, ".")
		for _, s := range d.Sections {
			if s.Service == service && s.Sets(key) {
				notes = append(notes, fmt.Sprintf("%s stays as --set says: command lines count more than the configuration", name))
			}
		}
	}
	for i := range p.Workers {
		for _, own := range p.Workers[i].Settings {
			for _, s := range d.Sections {
				if s.Service == own.Service {
					notes = append(notes, fmt.Sprintf("worker %s has settings of its own for %s in the plan, which count more", p.Workers[i].Name, s.Service))
				}
			}
		}
	}
	for _, s := range specs {
		again := slices.ContainsFunc(changes, func(c *api.ConfigChange) bool { return c.Section == s.Name && c.Effect == EffectRestart })
		switch {
		case again && s.Pipeline:
			notes = append(notes, fmt.Sprintf("service %s is started again: the switches connect anew, and go on forwarding meanwhile", s.Name))
		case again && s.Listens:
			notes = append(notes, fmt.Sprintf("service %s is started again: its clients connect anew", s.Name))
		}
	}
	return notes
}

// StartKeys reports keys of a document that are fixed at start, unless they
// repeat the present value.
func StartKeys(d *plan.Document, p *plan.Plan, alone bool) error {
	var errs []error
	fail := func(key string) {
		if alone {
			errs = append(errs, fmt.Errorf("line %d: %s is decided at start; start the controller again with weft up --config, or run a plan", d.Line(key), key))
		} else {
			errs = append(errs, fmt.Errorf("line %d: %s is a key of the plan; take it out here, and apply another plan with weft apply", d.Line(key), key))
		}
	}
	list := func(text string) []string {
		return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(`[]", `, r) })
	}
	if d.Services != "" && !slices.Equal(slices.Sorted(slices.Values(list(d.Services))), p.Services()) {
		fail("services")
	}
	if d.Pipeline != "" && !slices.Equal(list(d.Pipeline), p.Pipeline) {
		fail("pipeline")
	}
	return errors.Join(errs...)
}
