"""The token endpoint as the hub's OpenAPI description tells of it: a form in, and the words of RFC 6749 out."""

from typing import Final

from dragoman.model.json import JsonObject

TOKEN_OPERATION: Final[JsonObject] = {
    "summary": "A token for a key (OAuth 2, client credentials)",
    "security": [],
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "required": ["grant_type"],
                    "properties": {
                        "grant_type": {"const": "client_credentials"},
                        "client_id": {"type": "string", "description": "the key's id; or as Basic"},
                        "client_secret": {"type": "string", "description": "the whole key; or as Basic"},
                        "scope": {"type": "string", "description": "some of the key's scopes"},
                        "resource": {"type": "string", "description": "this hub"},
                    },
                }
            }
        },
    },
    "responses": {
        "200": {
            "description": "The token.",
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["access_token", "token_type", "expires_in", "scope"],
                        "properties": {
                            "access_token": {"type": "string"},
                            "token_type": {"type": "string"},
                            "expires_in": {"type": "integer"},
                            "scope": {"type": "string"},
                        },
                    }
                }
            },
        },
        **{
            status: {
                "description": text,
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "object",
                            "required": ["error"],
                            "properties": {"error": {"type": "string"}, "error_description": {"type": "string"}},
                        }
                    }
                },
            }
            for status, text in {
                "400": "The request is wrong: invalid_request, invalid_scope, invalid_target, unsupported_grant_type.",
                "401": "The client is unknown, or its secret is wrong: invalid_client.",
                "429": "Too many wrong secrets from this address.",
            }.items()
        },
    },
}
