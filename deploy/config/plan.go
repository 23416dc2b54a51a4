package config

import (
	"errors"
	"slices"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

// Override is a change of one key, service.key=value, made on a command line.
type Override string

// Shown returns an override without a secret.
func (o Override) Shown() string {
	if key, _, _ := strings.Cut(string(o), "="); plan.IsSecret(key) {
		return key + "=" + plan.Secret
	}
	return string(o)
}

// CheckPlan reports everything that is wrong with a plan, the settings of its
// services included, each on a line of its own that begins with the place in
// what the plan was read from. Overrides, which all processes have, count more
// than the plan.
func CheckPlan(p *plan.Plan, specs []weft.Spec, overrides ...Override) error {
	errs := []error{p.Check(specs)}
	seen := map[string]bool{} // what is wrong with config: is so in each worker
	add := func(err error) {
		if err == nil {
			return
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !seen[line] {
				seen[line] = true
				errs = append(errs, errors.New(line))
			}
		}
	}
	for _, w := range p.Workers {
		s := &Settings{}
		for _, section := range p.SettingsOf(w.Name) {
			if slices.ContainsFunc(specs, func(x weft.Spec) bool { return x.Name == section.Service && x.Config != nil }) { // of others, Check has told
				add(s.Add(section.Service, p.Source(), section.Located()))
			}
		}
		for _, o := range overrides {
			add(s.Set(string(o)))
		}
		add(s.Check(specs))
	}
	return errors.Join(errs...)
}

// Effective returns the configuration with which a service runs in a worker of
// a plan, nil if it has none.
func Effective(p *plan.Plan, worker string, spec *weft.Spec, overrides ...Override) (any, error) {
	s, err := settingsIn(p, worker, overrides...)
	if err != nil {
		return nil, err
	}
	return s.Configure(spec)
}

// settingsIn returns the settings of the services of a worker.
func settingsIn(p *plan.Plan, worker string, overrides ...Override) (*Settings, error) {
	s := &Settings{}
	var errs []error
	for _, section := range p.SettingsOf(worker) {
		errs = append(errs, s.Add(section.Service, p.Source(), section.Located()))
	}
	for _, o := range overrides {
		errs = append(errs, s.Set(string(o)))
	}
	return s, errors.Join(errs...)
}

// ShownText returns a configuration without its secrets: as it was written if it
// has none, else without comments.
func ShownText(text string) (string, error) {
	d, err := plan.ParseConfig("configuration", []byte(text))
	if err != nil {
		return "", err
	}
	masked := plan.Mask(d.Sections)
	if plan.Hash(masked) == plan.Hash(d.Sections) {
		return text, nil
	}
	out, err := plan.ConfigYAML(masked)
	head := ""
	for _, k := range []struct{ key, list string }{{"services", d.Services}, {"pipeline", d.Pipeline}} {
		if k.list != "" {
			head += k.key + ": " + k.list + "\n"
		}
	}
	return head + string(out), err
}
