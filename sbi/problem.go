package sbi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ProblemDetails is why a request failed (TS 29.571, RFC 9457).
type ProblemDetails struct {
	Type          string         `json:"type,omitempty"`
	Title         string         `json:"title,omitempty"`
	Status        int            `json:"status,omitempty"`
	Detail        string         `json:"detail,omitempty"`
	Instance      string         `json:"instance,omitempty"`
	Cause         Cause          `json:"cause,omitempty"`
	InvalidParams []InvalidParam `json:"invalidParams,omitempty"`
	// RetryAfter, if not zero, becomes the header Retry-After.
	RetryAfter time.Duration `json:"-"`
}

// InvalidParam names what is wrong in a request: a member of its body by a JSON
// pointer, a query parameter as "query NAME", a header as "header NAME", a
// variable of the path as "{NAME}".
type InvalidParam struct {
	Param  string `json:"param"`
	Reason string `json:"reason,omitempty"`
}

// A Cause is the machine's reason in ProblemDetails.
type Cause string

// Causes of TS 29.500, Tables 5.2.7.2-1 and 5.2.7.4-1, and of TS 29.510.
const (
	InvalidAPI                  Cause = "INVALID_API"
	InvalidMessageFormat        Cause = "INVALID_MSG_FORMAT"
	MandatoryMemberIncorrect    Cause = "MANDATORY_IE_INCORRECT"
	MandatoryMemberMissing      Cause = "MANDATORY_IE_MISSING"
	OptionalMemberIncorrect     Cause = "OPTIONAL_IE_INCORRECT"
	MandatoryParameterIncorrect Cause = "MANDATORY_QUERY_PARAM_INCORRECT"
	MandatoryParameterMissing   Cause = "MANDATORY_QUERY_PARAM_MISSING"
	OptionalParameterIncorrect  Cause = "OPTIONAL_QUERY_PARAM_INCORRECT"
	ModificationNotAllowed      Cause = "MODIFICATION_NOT_ALLOWED"
	SubscriptionNotAllowed      Cause = "SUBSCRIPTION_NOT_ALLOWED"
	SubscriptionNotFound        Cause = "SUBSCRIPTION_NOT_FOUND"
	ResourceNotFound            Cause = "RESOURCE_URI_STRUCTURE_NOT_FOUND"
	ContextNotFound             Cause = "CONTEXT_NOT_FOUND"
	NFCongestionRisk            Cause = "NF_CONGESTION_RISK"
	NFCongestion                Cause = "NF_CONGESTION"
	NFServiceCongestion         Cause = "NF_SERVICE_CONGESTION"
	InsufficientResources       Cause = "INSUFFICIENT_RESOURCES"
	UnspecifiedFailure          Cause = "UNSPECIFIED_NF_FAILURE"
	SystemFailure               Cause = "SYSTEM_FAILURE"
	InboundServerError          Cause = "INBOUND_SERVER_ERROR"
	TargetNotReachable          Cause = "TARGET_NF_NOT_REACHABLE"
	NRFNotReachable             Cause = "NRF_NOT_REACHABLE"
	DiscoveryFailure            Cause = "NF_DISCOVERY_FAILURE"
	LoopDetected                Cause = "MSG_LOOP_DETECTED"
	HopsReached                 Cause = "MAX_SCP_HOPS_REACHED"
	RequesterNotAllowed         Cause = "REQUESTER_NOT_ALLOWED" // of ours; TS 29.510 has none for a discovery that is not allowed
	TimedOutRequest             Cause = "TIMED_OUT_REQUEST"
	UnsupportedMediaType        Cause = "UNSUPPORTED_MEDIA_TYPE" // of ours
	ContentTooLarge             Cause = "CONTENT_TOO_LARGE"      // of ours
	InstanceOfAnother           Cause = "INSTANCE_OF_ANOTHER"    // of ours: the instance is not the one that is addressed
)

// Error returns the problem in a line.
func (p *ProblemDetails) Error() string {
	var s strings.Builder
	s.WriteString(strconv.Itoa(p.Status))
	if p.Cause != "" {
		s.WriteString(" " + string(p.Cause))
	}
	for _, i := range p.InvalidParams {
		s.WriteString(": " + i.Param + ": " + i.Reason)
	}
	if p.Detail != "" {
		s.WriteString(": " + p.Detail)
	}
	return s.String()
}

// Problem returns a ProblemDetails with what most have.
func Problem(status int, cause Cause, detail string) *ProblemDetails {
	return &ProblemDetails{Title: http.StatusText(status), Status: status, Cause: cause, Detail: detail}
}

// invalid returns the 400 that names one parameter.
func invalid(cause Cause, param, reason string) *ProblemDetails {
	p := Problem(http.StatusBadRequest, cause, "")
	p.InvalidParams = []InvalidParam{{Param: param, Reason: reason}}
	return p
}

// malformed returns the 400 of a member that has not the form that it should.
func malformed(at, want string, err error) *ProblemDetails {
	var syntax *json.SyntaxError
	if at == "" || errors.As(err, &syntax) {
		return Problem(http.StatusBadRequest, InvalidMessageFormat, want+": "+err.Error())
	}
	return invalid(OptionalMemberIncorrect, at, want)
}

// ProblemOf returns the problem that an error is, or a 500 that does not say
// what happened inside.
func ProblemOf(err error) *ProblemDetails {
	var p *ProblemDetails
	if errors.As(err, &p) {
		return p
	}
	return Problem(http.StatusInternalServerError, SystemFailure, "")
}

// WriteProblem answers a request with the problem that err is, as
// application/problem+json.
func WriteProblem(w http.ResponseWriter, err error) {
	p := ProblemOf(err)
	w.Header().Set("Content-Type", "application/problem+json")
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(p.RetryAfter.Round(time.Second)/time.Second))))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // who asked may have gone
}
