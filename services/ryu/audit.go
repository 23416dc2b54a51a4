package ryu

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/auditlog"
)

// auditWho is the audit log's name for users of Ryu's REST, followed by the
// user's number for another user of this machine.
const auditWho = "ryu"

// What the audit log of this service keeps.
const (
	auditSize  = 8 << 20 // octets of a file
	auditFiles = 8
	auditText  = 4 << 10 // octets of one text
)

// change is one request that may change something, on its way into the audit
// log.
type change struct {
	line  auditlog.Record
	begun time.Time
}

// begin records a request.
func begin(r *http.Request, who string) *change {
	now := time.Now()
	return &change{begun: now, line: auditlog.Record{
		Time: now.UTC(), Who: who, Role: "operate", From: r.RemoteAddr, Method: "ryu." + r.Method + " " + clip(r.URL.Path),
	}}
}

// end writes the line: the request and its outcome. A header of the answer names
// what the switch has refused.
func (c *change) end(log *auditlog.Log, body []byte, answer http.Header, err error) {
	request, e := json.Marshal(map[string]string{"body": clip(string(body))})
	if e != nil {
		request = json.RawMessage(`{}`)
	}
	c.line.Request, c.line.TookUS, c.line.Result = request, time.Since(c.begun).Microseconds(), codes.OK.String()
	switch refused := answer.Get("Weft-Refused"); {
	case err != nil:
		c.line.Result, c.line.Error = kindOf(err).String(), clip(err.Error())
	case refused != "":
		c.line.Result, c.line.Error = codes.FailedPrecondition.String(), clip(refused)
	}
	log.Add(&c.line)
}

// kindOf returns the kind of an error, also of one that is a status of HTTP.
func kindOf(err error) codes.Code {
	f := (*failure)(nil)
	if !errors.As(err, &f) {
		return api.KindOf(err)
	}
	switch f.status {
	case http.StatusBadRequest:
		return codes.InvalidArgument
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound:
		return codes.NotFound
	case http.StatusConflict:
		return codes.FailedPrecondition
	case http.StatusRequestEntityTooLarge:
		return codes.ResourceExhausted
	case http.StatusNotImplemented:
		return codes.Unimplemented
	case http.StatusGatewayTimeout:
		return codes.DeadlineExceeded
	}
	return codes.Unknown
}

// clip shortens a text.
func clip(text string) string {
	if len(text) <= auditText {
		return strings.ToValidUTF8(text, "\ufffd")
	}
	return fmt.Sprintf("%s… (%d octets)", strings.ToValidUTF8(text[:auditText], ""), len(text))
}
