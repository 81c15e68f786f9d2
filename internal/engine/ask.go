package engine

import (
	"context"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/rpc/encryption"
	"go.temporal.io/server/temporal"

	"pawl/internal/pass"
)

// asking has a server ask who comes: the frontend wants the pass's token or its certificate for every call,
// and the other services, which take what they are told for granted, the certificate for every connection.
func asking(p *pass.Pass) []temporal.ServerOption {
	return []temporal.ServerOption{
		temporal.WithTLSConfigFactory(&encryption.FixedTLSConfigProvider{
			FrontendServerConfig: p.Server(), FrontendClientConfig: p.Insider(),
			InternodeServerConfig: p.Inner(), InternodeClientConfig: p.Insider(),
		}),
		temporal.WithAuthorizer(doorkeeper{p}),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return doorkeeper{p} }),
	}
}

// doorkeeper lets who has the pass do everything, and everybody else nothing: no health check either.
type doorkeeper struct{ pass *pass.Pass }

// GetClaims returns an administrator's claims for the pass's token, and for its certificate, which the
// connection has verified. It is not asked where neither token nor certificate came.
func (d doorkeeper) GetClaims(who *authorization.AuthInfo) (*authorization.Claims, error) {
	if who.TLSSubject != nil || d.pass.Opens(who.AuthToken) {
		return &authorization.Claims{System: authorization.RoleAdmin}, nil
	}
	return nil, nil
}

// Authorize allows what comes with claims.
func (d doorkeeper) Authorize(_ context.Context, claims *authorization.Claims, _ *authorization.CallTarget) (authorization.Result, error) {
	if claims != nil && claims.System == authorization.RoleAdmin {
		return authorization.Result{Decision: authorization.DecisionAllow}, nil
	}
	return authorization.Result{Decision: authorization.DecisionDeny, Reason: "this engine asks for pawl's token; `pawl up` says how the Temporal CLI brings it"}, nil
}
