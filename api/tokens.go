package api

// The gateway's own methods about who may do what, and who has done it. No
// service calls them: they are for clients of the northbound only.
var (
	CreateToken = Method[CreateTokenRequest, Token]{"gateway.CreateToken"}
	ListTokens  = Method[ListTokensRequest, ListTokensResponse]{"gateway.ListTokens"}
	RevokeToken = Method[RevokeTokenRequest, RevokeTokenResponse]{"gateway.RevokeToken"}
	ListAudit   = Method[ListAuditRequest, ListAuditResponse]{"gateway.ListAudit"}
)
