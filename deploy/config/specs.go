package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

// CheckSpecs reports all mismatches between services: each name that is used
// and not provided, provided twice, or malformed.
func CheckSpecs(specs []weft.Spec) error { return (&checker{}).check(specs) }

// CheckPart is CheckSpecs for a part of the services; others may be absent.
func CheckPart(specs []weft.Spec) error { return (&checker{partial: true}).check(specs) }

func (c *checker) check(specs []weft.Spec) error {
	*c = checker{
		partial:  c.partial,
		names:    map[string]bool{},
		serves:   map[string]string{},
		subjects: map[string]string{},
	}
	for i := range specs {
		c.declaration(&specs[i])
	}
	for i := range specs {
		c.needs(&specs[i])
	}
	return errors.Join(c.errs...)
}

type checker struct {
	partial  bool // absent services are no mistake
	names    map[string]bool
	serves   map[string]string // method -> service
	subjects map[string]string // subject -> publisher
	pipeline string            // the service that runs the pipeline
	errs     []error
}

func (c *checker) fail(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

var (
	serviceName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	bucketName  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	memberName  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
)

// reserved are names with a meaning of their own in configuration or metrics.
var reserved = []string{"services", "pipeline", "deploy"}

// declaration checks a Spec by itself and records what it provides.
func (c *checker) declaration(s *weft.Spec) {
	switch {
	case !serviceName.MatchString(s.Name):
		c.fail("service %q: a name is lower-case letters and digits, like that of its folder", s.Name)
	case slices.Contains(reserved, s.Name):
		c.fail("service %s: the name is reserved (%s); choose another", s.Name, strings.Join(reserved, ", "))
	case c.names[s.Name]:
		c.fail("service %s is listed twice; list it once", s.Name)
		return
	}
	c.names[s.Name] = true
	if s.Run == nil {
		c.fail("service %s: its Spec has no Run; set it to the function that runs the service", s.Name)
	}
	if s.Config != nil {
		if v := reflect.ValueOf(s.Config); v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
			c.fail("service %s: Config is a %T; make it a pointer to a struct that holds the defaults", s.Name, s.Config)
		}
	}
	for _, m := range s.Serves {
		c.member(s, "Serves", m.MethodName(), true)
		if other, ok := c.serves[m.MethodName()]; ok {
			c.fail("service %s serves %s, which %s serves, too; a method has one server", s.Name, m.MethodName(), other)
			continue
		}
		c.serves[m.MethodName()] = s.Name
	}
	for _, p := range s.Publishes {
		c.member(s, "Publishes", p.SubjectName(), true)
		if other, ok := c.subjects[p.SubjectName()]; ok {
			c.fail("service %s publishes %s, which %s publishes, too; a subject has one publisher", s.Name, p.SubjectName(), other)
			continue
		}
		c.subjects[p.SubjectName()] = s.Name
	}
	for i, b := range s.Buckets {
		if !bucketName.MatchString(b) {
			c.fail("service %s: bucket %q: a name is lower-case letters, digits and _, without the service's name", s.Name, b)
		}
		if slices.Contains(s.Buckets[:i], b) {
			c.fail("service %s lists bucket %s twice; list it once", s.Name, b)
		}
	}
	if s.Pipeline {
		if c.pipeline != "" {
			c.fail("services %s and %s both run the packet-in pipeline; one of them must not say Pipeline", c.pipeline, s.Name)
		}
		c.pipeline = s.Name
	}
}

// needs checks a Spec's requirements against what all Specs provide.
func (c *checker) needs(s *weft.Spec) {
	seen := map[string]bool{}
	for _, m := range s.Calls {
		name := m.MethodName()
		c.member(s, "Calls", name, false)
		if seen[name] {
			c.fail("service %s lists %s twice in Calls; list it once", s.Name, name)
			continue
		}
		seen[name] = true
		if _, ok := c.serves[name]; !ok && !optional(s, name) {
			c.missing(s, "calls", name, "serves", "Serves")
		}
	}
	for _, sub := range s.Wants() {
		name := sub.SubjectName()
		c.member(s, "Subscribes", name, false)
		publisher, ok := c.subjects[name]
		switch {
		case seen[name]:
			c.fail("service %s lists %s twice in Subscribes; list it once", s.Name, name)
		case !ok && !optional(s, name):
			c.missing(s, "subscribes to", name, "publishes", "Publishes")
		case publisher == s.Name && s.Scale != weft.Any: // replicas may listen to one another
			c.fail("service %s subscribes to its own %s; call the handler directly instead", s.Name, name)
		}
		seen[name] = true
	}
}

// optional reports whether a service can do without a method or subject.
func optional(s *weft.Spec, name string) bool {
	owner, _, _ := strings.Cut(name, ".")
	return slices.Contains(s.Optional, owner)
}

// missing reports an absent counterpart.
func (c *checker) missing(s *weft.Spec, wants, name, does, field string) {
	owner, _, _ := strings.Cut(name, ".")
	if c.names[owner] {
		c.fail("service %s %s %s, but the Spec of %s does not list it in %s; add it there", s.Name, wants, name, owner, field)
		return
	}
	if c.partial {
		return
	}
	c.fail("service %s %s %s, which service %s %s, but %s is not among the services that run; add %s or leave out %s",
		s.Name, wants, name, owner, does, owner, owner, s.Name)
}

// member checks the form service.Name and, for a service's own names, the
// prefix.
func (c *checker) member(s *weft.Spec, field, name string, own bool) {
	prefix, rest, _ := strings.Cut(name, ".")
	switch {
	case !serviceName.MatchString(prefix) || !memberName.MatchString(rest):
		c.fail("service %s: %s: name %q is not of the form service.Name", s.Name, field, name)
	case own && prefix != s.Name:
		c.fail("service %s: %s: %s has the prefix of service %s; provide only names that begin with %s.", s.Name, field, name, prefix, s.Name)
	}
}

// Stages returns the names of the pipeline's stages in order.
func Stages(specs []weft.Spec, wanted []string) ([]string, error) {
	isStage := map[string]bool{}
	var all []string
	for _, s := range specs {
		isStage[s.Name] = s.Stage
		if s.Stage {
			all = append(all, s.Name)
		}
	}
	var list []string
	var errs []error
	if len(wanted) == 0 {
		for _, name := range plan.DefaultPipeline() {
			if isStage[name] {
				list = append(list, name)
			}
		}
	}
	for _, name := range wanted {
		stage, present := isStage[name]
		switch {
		case !present:
			errs = append(errs, fmt.Errorf("pipeline: %s is not among the services that run; take it out or add the service; stages are: %s", name, OrNone(all)))
		case !stage:
			errs = append(errs, fmt.Errorf("pipeline: service %s is not a stage; take it out; stages are: %s", name, OrNone(all)))
		case slices.Contains(list, name):
			errs = append(errs, fmt.Errorf("pipeline: stage %s is listed twice; list it once", name))
		default:
			list = append(list, name)
		}
	}
	for _, name := range all {
		if !slices.Contains(list, name) && len(errs) == 0 {
			errs = append(errs, fmt.Errorf("pipeline: service %s is a stage but not listed, so it would see no packet; list it in its place, or leave the service out", name))
		}
	}
	return list, errors.Join(errs...)
}

func OrNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
