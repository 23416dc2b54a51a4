package ryu

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// failure is an unsuccessful answer: an HTTP status and why.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

func bad(format string, args ...any) error { return &failure{400, fmt.Sprintf(format, args...)} }

// number reads what Ryu's str_to_int reads, an integer or the text of one,
// from 0 to most.
func number(name string, v any, most uint64) (uint64, error) {
	var n *big.Int
	switch v := v.(type) {
	case *big.Int:
		n = v
	case string:
		var err error
		if n, err = parseInt(v); err != nil {
			return 0, bad("%s: %v", name, err)
		}
	default:
		return 0, bad("%s: want a number, decimal or 0x hex", name)
	}
	if !n.IsUint64() || n.Uint64() > most {
		return 0, bad("%s: %.40s: want 0 to %d", name, n.String(), most)
	}
	return n.Uint64(), nil
}

// number reads a number of the dictionary; otherwise is the default.
func (d dict) number(name string, otherwise, most uint64) (uint64, error) {
	v, ok := d[name]
	if !ok {
		return otherwise, nil
	}
	return number(name, v, most)
}

// list returns a list of the dictionary, by default an empty one.
func (d dict) list(name string) ([]any, error) {
	v, ok := d[name]
	if !ok {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, bad("%s: want a list", name)
	}
	return list, nil
}

// dict returns a dictionary of the dictionary, by default an empty one.
func (d dict) dict(name string) (dict, error) {
	v, ok := d[name]
	if !ok {
		return nil, nil
	}
	in, ok := v.(dict)
	if !ok {
		return nil, bad("%s: want a dictionary", name)
	}
	return in, nil
}

// text returns a string of the dictionary; otherwise is the default.
func (d dict) text(name, otherwise string) (string, error) {
	v, ok := d[name]
	if !ok {
		return otherwise, nil
	}
	s, ok := v.(string)
	if !ok {
		return "", bad("%s: want a string", name)
	}
	return s, nil
}

// reserved is a list of reserved numbers, which have names (Ryu's
// ofproto_v1_3, after OpenFlow 1.3.5).
type reserved struct {
	prefix string
	names  []named
}

type named struct {
	name   string
	number uint32
}

// The reserved numbers.
var (
	ports = reserved{"OFPP_", []named{
		{"MAX", 0xffffff00}, {"IN_PORT", 0xfffffff8}, {"TABLE", 0xfffffff9}, {"NORMAL", 0xfffffffa}, {"FLOOD", 0xfffffffb},
		{"ALL", 0xfffffffc}, {"CONTROLLER", 0xfffffffd}, {"LOCAL", 0xfffffffe}, {"ANY", 0xffffffff},
	}}
	tables  = reserved{"OFPTT_", []named{{"MAX", 0xfe}, {"ALL", 0xff}}}
	lengths = reserved{"OFPCML_", []named{{"MAX", 0xffe5}, {"NO_BUFFER", 0xffff}}}
	groups  = reserved{"OFPG_", []named{{"MAX", 0xffffff00}, {"ALL", 0xfffffffc}, {"ANY", 0xffffffff}}}
	meters  = reserved{"OFPM_", []named{{"MAX", 0xffff0000}, {"SLOWPATH", 0xfffffffd}, {"CONTROLLER", 0xfffffffe}, {"ALL", 0xffffffff}}}
	queues  = reserved{"OFPQ_", []named{{"ALL", 0xffffffff}}}
	roles   = reserved{"OFPCR_ROLE_", []named{{"NOCHANGE", 0}, {"EQUAL", 1}, {"MASTER", 2}, {"SLAVE", 3}}}
)

// toUser returns the name of a reserved number, else the number.
func (r *reserved) toUser(n uint32) any {
	for _, x := range r.names {
		if x.number == n {
			return x.name
		}
	}
	return n
}

// text is toUser as text.
func (r *reserved) text(n uint32) string {
	if s, ok := r.toUser(n).(string); ok {
		return s
	}
	return strconv.FormatUint(uint64(n), 10)
}

// fromUser reads a number or the name of a reserved one, with or without
// prefix, in any case.
func (r *reserved) fromUser(name string, v any, most uint32) (uint32, error) {
	if s, ok := v.(string); ok {
		text := strings.TrimPrefix(strings.ToUpper(s), r.prefix)
		for _, x := range r.names {
			if x.name == text {
				return x.number, nil
			}
		}
		if _, err := parseInt(s); err != nil {
			var names []string
			for _, x := range r.names {
				names = append(names, x.name)
			}
			return 0, bad("%s: %.40q: want a number or one of %s", name, s, strings.Join(names, ", "))
		}
	}
	n, err := number(name, v, uint64(most))
	return uint32(n), err
}

// in reads a reserved number of a dictionary; otherwise is the default.
func (r *reserved) in(d dict, name string, otherwise uint32) (uint32, error) {
	v, ok := d[name]
	if !ok {
		return otherwise, nil
	}
	return r.fromUser(name, v, math.MaxUint32)
}

// numberText returns a number, or the text of one, as text; nothing if it is
// neither.
func numberText(v any) string {
	switch v := v.(type) {
	case *big.Int:
		return v.String()
	case string:
		return strings.TrimSpace(v)
	}
	return ""
}
