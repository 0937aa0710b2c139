"""Models of Hugging Face's transformers and of torchvision, made from their configuration classes with random weights."""
from hawser_cases import case, main, need

torch, transformers = need("torch", "transformers")

GPU = "cuda"


def numbers(*tensors):
    """The sum and the largest magnitude of each tensor."""
    return [number for t in tensors for number in (t.double().sum().item(), t.double().abs().max().item())]


def made(kind, config):
    torch.manual_seed(0)
    return kind(config).to(GPU).eval()


def words(*shape, vocabulary=1000):
    return torch.randint(vocabulary, shape, generator=torch.Generator().manual_seed(1)).to(GPU)


def gpt2():
    return made(transformers.GPT2LMHeadModel, transformers.GPT2Config(
        vocab_size=1000, n_positions=256, n_embd=256, n_layer=4, n_head=4, bos_token_id=0, eos_token_id=None))


@case()
@torch.no_grad()
def gpt2_generates_greedily():
    text = gpt2().generate(words(2, 10), max_new_tokens=40, do_sample=False, pad_token_id=0)
    return text.flatten().tolist()


@case()
@torch.no_grad()
def gpt2_samples():
    torch.manual_seed(2)
    text = gpt2().generate(words(2, 10), max_new_tokens=20, do_sample=True, top_k=50, top_p=0.9, pad_token_id=0)
    return text.flatten().tolist()


@case()
@torch.no_grad()
def gpt2_searches_beams():
    text = gpt2().generate(words(2, 10), max_new_tokens=15, num_beams=4, do_sample=False, pad_token_id=0)
    return text.flatten().tolist()


@case()
@torch.no_grad()
def llama_generates_with_static_cache():
    model = made(transformers.LlamaForCausalLM, transformers.LlamaConfig(
        vocab_size=1000, hidden_size=256, intermediate_size=512, num_hidden_layers=3, num_attention_heads=8,
        num_key_value_heads=2, max_position_embeddings=256, eos_token_id=None)).to(torch.bfloat16)
    text = model.generate(words(2, 10), max_new_tokens=20, do_sample=False, pad_token_id=0,
                          cache_implementation="static")
    return text.flatten().tolist()


@case()
@torch.no_grad()
def bert():
    model = made(transformers.BertModel, transformers.BertConfig(
        vocab_size=1000, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024))
    mask = (torch.arange(64, device=GPU) < torch.tensor([[64], [40], [7]], device=GPU)).long()
    out = model(words(3, 64), attention_mask=mask)
    return numbers(out.last_hidden_state, out.pooler_output)


@case()
@torch.no_grad()
def vision_transformer_in_half_precision():
    model = made(transformers.ViTForImageClassification, transformers.ViTConfig(
        hidden_size=192, num_hidden_layers=3, num_attention_heads=3, intermediate_size=768, image_size=64,
        patch_size=8, num_labels=50)).half()
    images = torch.randn(4, 3, 64, 64, generator=torch.Generator().manual_seed(3)).to(GPU).half()
    return numbers(model(images).logits)


@case()
@torch.no_grad()
def whisper_generates():
    model = made(transformers.WhisperForConditionalGeneration, transformers.WhisperConfig(
        vocab_size=1000, d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=256, decoder_ffn_dim=256, max_source_positions=150,
        max_target_positions=100, decoder_start_token_id=1, bos_token_id=1, eos_token_id=2, pad_token_id=0))
    sound = torch.randn(2, 80, 300, generator=torch.Generator().manual_seed(4)).to(GPU)
    return model.generate(sound, max_new_tokens=20, do_sample=False).flatten().tolist()


@case()
@torch.no_grad()
def torchvision_models():
    torchvision, = need("torchvision")
    images = torch.randn(4, 3, 128, 128, generator=torch.Generator().manual_seed(5)).to(GPU)
    results = []
    for name in ("resnet18", "mobilenet_v3_small", "efficientnet_b0", "convnext_tiny"):
        torch.manual_seed(0)
        results.append(torchvision.models.get_model(name, num_classes=50).to(GPU).eval()(images))
    boxes = torch.rand(500, 4, generator=torch.Generator().manual_seed(6)).to(GPU) * 50
    boxes[:, 2:] += boxes[:, :2]
    kept = torchvision.ops.nms(boxes, boxes[:, 0], 0.4)
    return numbers(*results, kept)


@case(steps=20)
def gpt2_training(steps, timer):
    model = gpt2().train()
    model.config.use_cache = False
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    text = words(8, 128)
    torch.manual_seed(7)  # for dropout
    losses = []
    for step in range(steps + 3):
        if step == 3:
            torch.cuda.synchronize()
            timer.start()
        with torch.autocast(GPU, torch.bfloat16):
            loss = model(text, labels=text).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    torch.cuda.synchronize()
    timer.stop()
    return numbers(torch.stack(losses))


@case(steps=100)
@torch.no_grad()
def gpt2_generation(steps, timer):
    model = gpt2()
    prompt = words(1, 10)
    model.generate(prompt, max_new_tokens=5, do_sample=False, pad_token_id=0)
    timer.start()
    text = model.generate(prompt, max_new_tokens=steps, do_sample=False, pad_token_id=0)
    torch.cuda.synchronize()
    timer.stop()
    return text.flatten().tolist()


if __name__ == "__main__":
    main("transformers", f"{transformers.__version__}, torch {torch.__version__}")
