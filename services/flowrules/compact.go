package flowrules

import (
	"fmt"

	"github.com/weft-sdn/weft/flow"
)

// compact is a flow.Entry that takes a tenth of its memory: encoded, without
// the fields that it does not have. What is asked of many entries is beside it.
type compact struct {
	code     string // flow.Entry.AppendBinary, with no cookie
	cookie   flow.Cookie
	priority uint16
	idle     uint16 // IdleTimeout
	table    uint8
	next     uint8 // Goto
}

// pack returns an entry in its compact form.
func pack(e *flow.Entry) compact {
	var buffer [128]byte
	code := string(encodeBare(buffer[:0], e))
	return compact{code: code, cookie: e.Cookie, priority: e.Priority, idle: e.IdleTimeout, table: e.Table, next: e.Goto}
}

// encodeBare appends the encoding of an entry without its cookie.
func encodeBare(b []byte, e *flow.Entry) []byte {
	bare := *e
	bare.Cookie = 0
	b, err := bare.AppendBinary(b)
	if err != nil {
		panic(fmt.Sprintf("flowrules: an entry of the API: %v", err)) // its fields have names, so they can be encoded
	}
	return b
}

// entry returns the entry.
func (c *compact) entry() *flow.Entry {
	e := &flow.Entry{}
	if err := e.UnmarshalBinary([]byte(c.code)); err != nil {
		panic(fmt.Sprintf("flowrules: an entry of its own encoding: %v", err))
	}
	e.Cookie = c.cookie
	return e
}

// same is flow.Entry.Same.
func (c *compact) same(e *flow.Entry) bool {
	var buffer [128]byte
	if string(encodeBare(buffer[:0], e)) == c.code {
		return c.owner() == e.Cookie.Owner() && c.cookie.ID() == e.Cookie.ID()
	}
	return c.entry().Same(e) // there may be several encodings
}

// owner returns the owner of the entry.
func (c *compact) owner() flow.Owner { return c.cookie.Owner() }
