package policy

import (
	"fmt"
	"io"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/document"
)

// ReadFirewallFile reads rules from a file; its errors name the lines.
func ReadFirewallFile(path string, stdin io.Reader) ([]*api.FirewallRule, error) {
	path, docs, errs, err := readDocuments(path, stdin, "file of rules")
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	r := &fileReader{path: path, errs: errs}
	var rules []*api.FirewallRule
	for _, v := range docs {
		if v.Kind != document.Null {
			rules = append(rules, r.rules(v)...)
		}
	}
	if len(r.errs) == 0 && len(rules) == 0 {
		return nil, fmt.Errorf("%s: no rules in it; want a list of rules, or rules: with such a list", path)
	}
	return rules, joined(r.errs)
}

// rules reads a list of rules, or a mapping with one under rules.
func (r *fileReader) rules(v document.Value) (rules []*api.FirewallRule) {
	if below, ok := v.Get("rules"); ok { // as weft firewall list prints them
		v = below
	}
	switch v.Kind {
	case document.List:
		for _, item := range v.Items {
			rule := &api.FirewallRule{Priority: flow.PriorityOperator}
			r.message(rule, "a rule", item)
			rule.Number, rule.Packets, rule.Bytes = 0, 0, 0 // for the controller to say
			rules = append(rules, rule)
		}
	case document.Broken: // already reported
	default:
		r.wrong(v.Line, "want a list of rules, each with keys such as id, priority, action, match")
	}
	return rules
}
