package run

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/apps"
	"github.com/weft-sdn/weft/internal/auditlog"
)

// appChanges writes what apps change by calls into the audit log, in a file of
// the process's own, which is made when there is something to be written.
type appChanges struct {
	log  *slog.Logger
	file auditlog.Log
	once sync.Once
}

// requestMost is the largest request that is written down, in octets.
const requestMost = 16 << 10

func (a *appChanges) add(c apps.Change) {
	a.once.Do(func() {
		if err := a.file.Open(); err != nil {
			a.log.Error("what apps change is not written to the audit log", "error", err)
		}
	})
	r := &auditlog.Record{
		Time: c.Begun.UTC(), Who: c.Who, Role: "app", From: c.From, Method: c.Method, Result: "OK", TookUS: c.Took.Microseconds(),
		Request: json.RawMessage(`{}`),
	}
	if c.Err != nil {
		r.Result, r.Error = api.KindOf(c.Err).String(), c.Err.Error()
		if len(r.Error) > 500 {
			r.Error = strings.ToValidUTF8(r.Error[:500], "") + "…"
		}
	}
	if n := proto.Size(c.Request); n > requestMost {
		r.Request = json.RawMessage(fmt.Sprintf(`{"omitted":"%d octets"}`, n))
	} else if text, err := (protojson.MarshalOptions{UseProtoNames: true}).Marshal(c.Request); err == nil {
		r.Request = text
	}
	a.file.Add(r)
}
