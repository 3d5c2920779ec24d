"""LiteLLM's providers: where each is served, and the environment variable that holds the operator's key for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Provider:
    """`host`: the only host that its proxy sandbox may reach. `key_variable`: used when a launch brings no key."""

    host: str
    key_variable: str


PROVIDERS: dict[str, Provider] = {
    "anthropic": Provider("api.anthropic.com", "ANTHROPIC_API_KEY"),
    "cohere": Provider("api.cohere.com", "COHERE_API_KEY"),
    "deepseek": Provider("api.deepseek.com", "DEEPSEEK_API_KEY"),
    "fireworks_ai": Provider("api.fireworks.ai", "FIREWORKS_AI_API_KEY"),
    "gemini": Provider("generativelanguage.googleapis.com", "GEMINI_API_KEY"),
    "groq": Provider("api.groq.com", "GROQ_API_KEY"),
    "mistral": Provider("api.mistral.ai", "MISTRAL_API_KEY"),
    "openai": Provider("api.openai.com", "OPENAI_API_KEY"),
    "openrouter": Provider("openrouter.ai", "OPENROUTER_API_KEY"),
    "perplexity": Provider("api.perplexity.ai", "PERPLEXITYAI_API_KEY"),
    "together_ai": Provider("api.together.xyz", "TOGETHERAI_API_KEY"),
    "xai": Provider("api.x.ai", "XAI_API_KEY"),
}


def provider_of(model: str) -> Provider | None:
    """The provider of a LiteLLM name such as `openrouter/qwen/qwen3-32b`; None when it is not one of these."""
    return PROVIDERS.get(model.split("/", 1)[0])
