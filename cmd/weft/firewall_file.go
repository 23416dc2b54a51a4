package main

import (
	"fmt"
	"io"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/document"
)

// readFirewallFile reads rules from a file; its errors name the lines.
func readFirewallFile(path string, stdin io.Reader) ([]*api.FirewallRule, error) {
	path, docs, errs, err := readDocuments(path, stdin, "file of rules")
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	r := &ruleReader{path: path, errs: errs}
	for _, v := range docs {
		if v.Kind != document.Null {
			r.list(v)
		}
	}
	if len(r.errs) == 0 && len(r.rules) == 0 {
		return nil, fmt.Errorf("%s: no rules in it; want a list of rules, or rules: with such a list", path)
	}
	return r.rules, joined(r.errs)
}

// ruleReader turns values into rules.
type ruleReader struct {
	path  string
	rules []*api.FirewallRule
	errs  []error
}

func (r *ruleReader) wrong(line int, format string, args ...any) {
	r.errs = append(r.errs, document.Mistake{Line: line, Text: fmt.Sprintf(format, args...)}.In(r.path))
}

// list reads a list of rules, or a mapping with one under rules.
func (r *ruleReader) list(v document.Value) {
	if below, ok := v.Get("rules"); ok { // as weft firewall list prints them
		v = below
	}
	switch v.Kind {
	case document.List:
		for _, item := range v.Items {
			r.rule(item)
		}
	case document.Broken: // and told of
	default:
		r.wrong(v.Line, "want a list of rules, each with keys such as id, priority, action, match")
	}
}

// rule reads one rule.
func (r *ruleReader) rule(v document.Value) {
	if v.Kind == document.Broken {
		return // and told of
	}
	if len(v.Entries) == 0 {
		r.wrong(v.Line, "want a rule: keys with values, such as id, priority, action, match")
		return
	}
	rule := &api.FirewallRule{Priority: flow.PriorityOperator}
	fields := rule.ProtoReflect().Descriptor().Fields()
	for _, e := range v.Entries {
		d := fields.ByName(protoreflect.Name(e.Key))
		switch {
		case d == nil:
			r.wrong(e.Line, "unknown key %q; allowed: id, priority, action, dpid, tenant, vlan, match, comment", e.Key)
		case e.Value.Kind == document.Broken: // and told of
		default:
			if want := setField(rule, d, e.Value); want != "" {
				r.wrong(e.Value.Line, "%s: want %s", e.Key, want)
			}
		}
	}
	rule.Number, rule.Packets, rule.Bytes = 0, 0, 0 // for the controller to say
	r.rules = append(r.rules, rule)
}
